//! Rules that judge each packet: all flows stay with the kernel.

use super::{FLUSH, forward, nft};
use crate::trial::RuleSet;

/// A rule that judges each packet is gone: flows are fast again, and one that refuses is there.
const THEN_REFUSES: &str = nft!(
    "flush ruleset\n",
    "table inet other { chain forward { type filter hook forward priority 0; udp dport 7000 drop; }; }"
);

pub(crate) const SETS: &[RuleSet] = &[
    RuleSet::kept("a rate", forward!("accept", "udp dport 7000 limit rate over 1/day burst 60 packets drop"), &[THEN_REFUSES]),
    RuleSet::kept("a rate of bytes", forward!("accept", "udp dport 7000 limit rate over 1 bytes/day burst 4 kbytes drop"), &[FLUSH]),
    RuleSet::fast(
        "a rate of what is new",
        forward!("drop", "ct state established,related accept", "ct state new limit rate 1/day burst 12 packets accept"),
        &[FLUSH],
    ),
    RuleSet::kept("a quota", forward!("accept", "meta l4proto udp quota over 5000 bytes drop"), &[FLUSH]),
    RuleSet::kept("a length", forward!("accept", "meta length > 1000 drop", "meta length 60 drop"), &[THEN_REFUSES]),
    RuleSet::kept("a class of service that is set", forward!("accept", "ip dscp set cs3", "ip6 dscp set cs3"), &[FLUSH]),
    RuleSet::kept("hops that are set", forward!("accept", "ip ttl set 31", "ip6 hoplimit set 31"), &[FLUSH]),
    RuleSet::kept("a class of service", forward!("accept", "ip dscp ef drop", "ip6 dscp ef drop", "ip ecn ce drop"), &[FLUSH]),
    RuleSet::kept("a datagram's length", forward!("accept", "udp length 8 drop", "udp length > 400 drop"), &[FLUSH]),
    RuleSet::kept("where the processor is", forward!("accept", "meta cpu 0 udp dport 7001 drop"), &[FLUSH]),
    RuleSet::kept(
        "a mark by hops",
        nft!("table inet engine { chain pre { type filter hook prerouting priority mangle; ip ttl < 10 meta mark set 9; ip6 hoplimit < 10 ct mark set 9; };
            chain forward { type filter hook forward priority 0; meta mark 9 drop; ct mark 9 drop; }; }"),
        &[FLUSH],
    ),
    RuleSet::kept(
        "a quota by its name, and a limit",
        nft!("table inet engine { quota most { over 4000 bytes }; limit often { rate over 1/day burst 30 packets };
            chain forward { type filter hook forward priority 0; udp dport 7000 quota name most drop; tcp dport 7000 limit name often drop; }; }"),
        &[FLUSH],
    ),
    RuleSet::kept(
        "inet: a rate at the ingress of a host end",
        nft!("table inet engine { chain it { type filter hook ingress device \"@one\" priority 0; udp dport 7000 limit rate over 1/day burst 40 packets drop; }; }"),
        &[FLUSH],
    ),
    RuleSet::kept(
        "netdev: a length at the egress of a host end",
        nft!("table netdev engine { chain it { type filter hook egress device \"@two\" priority 0; udp length > 400 drop; }; }"),
        &[FLUSH],
    ),
    RuleSet::kept("hops that are asked for", forward!("accept", "ip ttl < 65 udp dport 7001 drop"), &[FLUSH]),
    RuleSet::kept("how many packets a connection has had", forward!("accept", "ct packets > 6 drop"), &[FLUSH]),
    RuleSet::kept("how many bytes a direction has had", forward!("accept", "ct original bytes > 600 meta l4proto tcp drop"), &[FLUSH]),
    RuleSet::kept("one of three packets", forward!("accept", "meta l4proto udp numgen inc mod 3 0 drop"), &[FLUSH]),
    RuleSet::kept("what a payload says", forward!("accept", "udp dport 7000 @th,64,8 0x31 @th,200,8 0x2e drop"), &[THEN_REFUSES]),
    RuleSet::kept(
        "a set that learns by a rate",
        nft!("table inet engine { set busy { type ipv4_addr; flags dynamic, timeout; timeout 1h; };
            chain forward { type filter hook forward priority 0; ip saddr @busy drop;
            udp dport 7001 add @busy { ip saddr limit rate over 1/day burst 9 packets } drop; }; }"),
        &[FLUSH],
    ),
    RuleSet::any(
        "how many connections there are",
        forward!("accept", "ct state new ct count over 9 drop"),
        &[FLUSH],
    ),
    RuleSet::kept("a window", forward!("accept", "tcp window 65535 tcp dport 7001 drop"), &[FLUSH]),
    RuleSet::kept("a sequence number", forward!("accept", "tcp sequence > 0x40000000 tcp sport 7000 drop"), &[FLUSH]),
    RuleSet::fast(
        "a rate behind what is established",
        forward!("accept", "ct state established accept", "limit rate over 1/day burst 30 packets drop"),
        &[THEN_REFUSES],
    ),
];
