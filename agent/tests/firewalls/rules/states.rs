//! Rules about connection tracking's states.

use super::{FLUSH, LATE_DROP, LATE_DROP_ENDS, REPLACED, forward, nft};
use crate::sides::FORGET;
use crate::trial::RuleSet;

pub(crate) const SETS: &[RuleSet] = &[
    RuleSet::fast(
        "a stateful allow list",
        forward!("drop", "ct state invalid drop", "ct state established,related accept",
            "meta l4proto { tcp, udp } th dport 7000 accept", "meta l4proto { icmp, ipv6-icmp } accept"),
        &[LATE_DROP, LATE_DROP_ENDS],
    ),
    RuleSet::fast(
        "the same by a table of each family",
        nft!("table ip engine { chain forward { type filter hook forward priority 0; policy drop;
            ct state established,related accept; meta l4proto { tcp, udp } th dport 7000 accept; icmp type echo-request accept; }; }
            table ip6 engine { chain forward { type filter hook forward priority 0; policy drop;
            ct state established,related accept; meta l4proto { tcp, udp } th dport 7001 accept; }; }"),
        &["nft flush chain ip engine forward", REPLACED],
    ),
    RuleSet::fast(
        "a map of states",
        forward!("accept", "ct state vmap { established : accept, related : accept, invalid : drop }",
            "th dport 7001 reject"),
        &[REPLACED, FLUSH],
    ),
    RuleSet::fast("what is invalid is dropped", forward!("accept", "ct state invalid drop"), &[FLUSH]),
    RuleSet::fast(
        "what is related is dropped",
        forward!("accept", "ct state established accept", "ct state related drop"),
        &[LATE_DROP],
    ),
    RuleSet::fast(
        "states that are asked of each packet",
        forward!("drop", "ct state established accept", "ct state new th dport { 7000, 7100 } accept",
            "ct state new meta l4proto { icmp, ipv6-icmp } accept"),
        &[REPLACED, LATE_DROP],
    ),
    RuleSet::fast(
        "one direction by its original",
        forward!("drop", "ct direction reply accept", "th dport 7000 accept"),
        &[LATE_DROP],
    ),
    RuleSet::fast(
        "the original's address and port",
        forward!("drop", "meta l4proto { tcp, udp } ct original ip saddr @one4 ct original proto-dst 7000 accept",
            "meta l4proto { tcp, udp } ct original ip6 saddr @one6 ct original proto-dst 7000 accept"),
        &["nft flush chain inet engine forward", FLUSH],
    ),
    RuleSet::fast(
        "a connection's mark",
        forward!("drop", "ct mark 0x7 accept", "ct state new th dport 7000 ct mark set 0x7 accept"),
        &[REPLACED],
    ),
    RuleSet::fast(
        "a packet's mark from its connection's",
        nft!("table inet engine { chain pre { type filter hook prerouting priority mangle; meta mark set ct mark; };
            chain forward { type filter hook forward priority 0; policy drop; meta mark 0x7 accept;
            ct state new th dport 7000 ct mark set 0x7 accept; ct state new th dport 7001 ct mark set 0x8 drop; }; }"),
        &[REPLACED],
    ),
    RuleSet::any(
        "what is assured",
        forward!("drop", "ct status assured accept", "ct state new accept", "ct packets < 4 accept",
            "ct status seen-reply accept"),
        &[LATE_DROP],
    ),
    RuleSet::any(
        "what is not tracked, and what is",
        nft!("table inet engine { chain raw { type filter hook prerouting priority raw; udp dport 7000 notrack;
            udp sport 7000 notrack; }; chain forward { type filter hook forward priority 0; policy drop;
            ct state untracked accept; ct state established,related accept; tcp dport 7000 accept; }; }"),
        &[REPLACED, FLUSH],
    ),
    RuleSet::any(
        "nothing is tracked",
        nft!("table inet engine { chain raw { type filter hook prerouting priority raw; notrack; };
            chain forward { type filter hook forward priority 0; policy drop; ct state established accept;
            th dport 7000 accept; th sport 7000 accept; }; }"),
        &["nft delete chain inet engine raw", REPLACED],
    ),
    RuleSet::any(
        "zones",
        nft!("table inet engine { chain raw { type filter hook prerouting priority raw;
            udp dport 7000 ct zone set 7; udp sport 7000 ct zone set 7; tcp dport 7000 ct original zone set 8; };
            chain forward { type filter hook forward priority 0; policy drop; ct state established,related accept;
            th dport 7000 accept; }; }"),
        &[LATE_DROP, LATE_DROP_ENDS],
    ),
    RuleSet::fast(
        "related errors only",
        forward!("drop", "ct state established accept", "ct state related meta l4proto { icmp, ipv6-icmp } accept",
            "th dport { 7000, 7001 } accept"),
        &[LATE_DROP, LATE_DROP_ENDS],
    ),
    RuleSet::fast(
        "connections that are forgotten",
        forward!("drop", "ct state established,related accept", "th dport 7000 accept"),
        &[FORGET, LATE_DROP, LATE_DROP_ENDS, FORGET],
    ),
    RuleSet::fast(
        "bridged packets that meet the rules of IP no more, and again",
        // What is not tracked meanwhile is beyond each window that was seen: it counts as invalid, unless connection tracking is liberal.
        concat!("echo 1 >/proc/sys/net/netfilter/nf_conntrack_tcp_be_liberal\n",
            forward!("drop", "ct state established accept", "th dport 7000 accept")),
        &["sysctl -qw net.bridge.bridge-nf-call-iptables=0",
            "sysctl -qw net.bridge.bridge-nf-call-iptables=1 net.bridge.bridge-nf-call-ip6tables=0", FLUSH],
    ),
    RuleSet::any(
        "translations",
        nft!("table ip nat { chain pre { type nat hook prerouting priority -100; udp dport 7200 dnat to @three4:7000; };
            chain post { type nat hook postrouting priority 100; ip saddr @one4 udp dport 7000 ip daddr @three4 snat to 10.77.0.99; }; }
            table inet engine { chain forward { type filter hook forward priority 0; ct state invalid drop; }; }"),
        &["nft delete table ip nat", "nft -f - <<'END'\ntable ip nat { chain pre { type nat hook prerouting priority -100; udp dport 7200 redirect to :7001; }; }\nEND"],
    ),
    RuleSet::fast(
        "a verdict of the state and the port",
        forward!("drop", "ct state established accept", "ct state . th dport vmap { new . 7000 : accept, new . 7001 : drop }"),
        &[LATE_DROP],
    ),
];
