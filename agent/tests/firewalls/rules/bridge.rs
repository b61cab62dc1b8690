//! Rules of the families `bridge` and `netdev`.

use super::{FLUSH, nft};
use crate::trial::RuleSet;

macro_rules! bridge {
    ($hook:literal, $policy:literal, $($rule:literal),+) => {
        nft!("table bridge engine { chain it { type filter hook ", $hook, " priority 0; policy ", $policy, ";\n",
            $($rule, "\n"),+, "}; }")
    };
}

const DROPS_UDP: &str = "nft insert rule bridge engine it meta l4proto udp drop";

pub(crate) const SETS: &[RuleSet] = &[
    RuleSet::fast("bridge: a port", bridge!("forward", "accept", "udp dport 7001 drop", "tcp dport 7001 drop"), &[DROPS_UDP, FLUSH]),
    RuleSet::fast(
        "bridge: an allow list",
        bridge!("forward", "drop", "ether type arp accept", "th dport 7000 accept", "th sport 7000 accept"),
        &[DROPS_UDP, "nft flush chain bridge engine it"],
    ),
    RuleSet::fast("bridge: prerouting", bridge!("prerouting", "accept", "ip saddr @three4 drop", "iifname \"@three\" ip6 daddr @two6 drop"), &[DROPS_UDP]),
    RuleSet::fast("bridge: postrouting", bridge!("postrouting", "accept", "oifname \"@two\" th dport 7001 drop"), &[DROPS_UDP]),
    RuleSet::fast("bridge: input and output", nft!("table bridge engine { chain input { type filter hook input priority 0; udp dport 7001 drop; };
        chain it { type filter hook output priority 0; ip protocol icmp drop; }; }"), &[DROPS_UDP]),
    RuleSet::fast("bridge: a kind of frame", bridge!("forward", "accept", "ether type ip6 drop"), &[FLUSH]),
    RuleSet::fast("bridge: ports of the bridge", bridge!("forward", "accept", "iifname \"@three\" oifname \"@two\" drop"), &["nft add rule bridge engine it iifname \"@two\" drop"]),
    RuleSet::fast(
        "bridge: a map and a set, which changes",
        nft!("table bridge engine { set ports { type inet_service; elements = { 7001 }; }; chain refuse { drop; };
            chain it { type filter hook forward priority 0; th dport @ports drop; meta l4proto . th dport vmap { udp . 7100 : jump refuse }; }; }"),
        &["nft add element bridge engine ports { 7000 }", "nft flush set bridge engine ports"],
    ),
    RuleSet::fast("bridge: hardware addresses", bridge!("forward", "accept", "ether saddr 02:00:00:00:77:10 drop", "ether daddr ff:ff:ff:ff:ff:ff drop", "meta pkttype multicast drop"), &[FLUSH]),
    RuleSet::kept("bridge: a rate", bridge!("forward", "accept", "udp dport 7000 limit rate over 1/day burst 50 packets drop"), &[FLUSH]),
    RuleSet::fast("bridge and inet", nft!("table bridge engine { chain it { type filter hook forward priority 0; udp dport 7001 drop; }; }
        table inet engine { chain it { type filter hook forward priority 0; ct state invalid drop; ct state established accept; tcp dport 7001 drop; }; }"), &[DROPS_UDP]),
    RuleSet::fast(
        "netdev: ingress of a host end",
        nft!("table netdev engine { chain it { type filter hook ingress device \"@one\" priority 0; udp dport 7001 drop; tcp dport 7001 drop; }; }"),
        &["nft add rule netdev engine it udp dport 7000 drop", FLUSH],
    ),
    RuleSet::fast(
        "netdev: egress of a host end",
        nft!("table netdev engine { chain it { type filter hook egress device \"@two\" priority 0; udp dport 7001 drop; tcp dport 7001 drop; }; }"),
        &["nft add rule netdev engine it udp dport 7000 drop", FLUSH],
    ),
    RuleSet::fast(
        "netdev: a set at two host ends, which changes",
        nft!("table netdev engine { set from { type ipv4_addr; elements = { @three4 }; };
            chain it { type filter hook ingress devices = { \"@one\", \"@three\" } priority 0; ip saddr @from drop; }; }"),
        &["nft add element netdev engine from { @one4 }"],
    ),
    RuleSet::any(
        "netdev: ingress and egress of the bridge",
        nft!("table netdev engine { chain in { type filter hook ingress device cni0 priority 0; udp dport 7001 drop; };
            chain out { type filter hook egress device cni0 priority 0; udp sport 7000 drop; }; }"),
        &["nft add rule netdev engine out udp dport 7001 drop", FLUSH],
    ),
    RuleSet::fast("bridge: ARP", bridge!("forward", "accept", "arp operation reply drop", "vlan id 5 drop"), &[FLUSH]),
    RuleSet::any(
        "ebtables: ports",
        "ebtables-nft -A FORWARD -p IPv4 --ip-proto udp --ip-dport 7001 -j DROP; ebtables-nft -A FORWARD -p IPv6 --ip6-proto tcp --ip6-dport 7001 -j DROP",
        &["ebtables-nft -I FORWARD -p IPv4 --ip-src @one4 -j DROP", FLUSH],
    ),
    RuleSet::kept(
        "ebtables: a rate",
        "ebtables-nft -A FORWARD -p IPv4 --ip-proto udp --limit 1/day --limit-burst 30 -j ACCEPT; ebtables-nft -A FORWARD -p IPv4 --ip-proto udp -j DROP",
        &[FLUSH],
    ),
];
