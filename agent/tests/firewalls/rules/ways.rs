//! Rules at each place that what comes to a host port, or leaves a container, passes by: of frames, of interfaces, before it is tracked, by marks.

use super::{FLUSH, forward, nft};
use crate::trial::RuleSet;

macro_rules! bridge {
    ($hook:literal, $($rule:literal),+) => {
        nft!("table bridge engine { chain it { type filter hook ", $hook, " priority 0; policy accept;\n", $($rule, "\n"),+, "}; }")
    };
}

pub(crate) const SETS: &[RuleSet] = &[
    RuleSet::any(
        "bridge: what the node sends",
        bridge!("output", "ip daddr @two4 tcp dport 7000 drop", "meta l4proto udp th dport 7001 drop"),
        &["nft add rule bridge engine it meta l4proto sctp drop", FLUSH],
    ),
    RuleSet::any(
        "bridge: what the node gets",
        bridge!("input", "ip saddr @two4 tcp sport 7000 drop", "meta l4proto udp th sport 7001 drop"),
        &["nft add rule bridge engine it ip protocol icmp drop"],
    ),
    RuleSet::any("bridge: prerouting", bridge!("prerouting", "tcp dport 8000 drop", "udp sport 7000 drop", "sctp dport 7001 drop"), &[FLUSH]),
    RuleSet::any("bridge: postrouting", bridge!("postrouting", "oifname \"@two\" th dport 7001 drop", "iifname \"@one\" udp dport 7000 drop"), &[FLUSH]),
    RuleSet::any(
        "netdev: a host end",
        nft!("table netdev engine { chain in { type filter hook ingress device \"@two\" priority 0; tcp sport 7000 drop; sctp sport 7001 drop; };
            chain out { type filter hook egress device \"@two\" priority 0; udp dport 7000 drop; }; }"),
        &["nft add rule netdev engine out meta l4proto { tcp, sctp } th dport 7001 drop", FLUSH],
    ),
    RuleSet::any(
        "netdev: the bridge and the way out",
        nft!("table netdev engine { chain in { type filter hook ingress device cni0 priority 0; udp sport 7001 drop; };
            chain out { type filter hook egress device up0 priority 0; tcp sport 8000 drop; udp dport 7000 drop; }; }"),
        &[FLUSH],
    ),
    RuleSet::any(
        "marks, of packets and of connections",
        nft!("table inet engine { chain pre { type filter hook prerouting priority mangle; iifname up0 th dport 8001 meta mark set 0x7;
            meta l4proto { udp, sctp } th dport 8000 ct mark set 0x8; };
            chain forward { type filter hook forward priority 0; meta mark 0x7 drop; ct mark 0x8 drop; }; }"),
        &[nft!("flush chain inet engine forward\nadd rule inet engine forward ct mark != 0x8 ct status dnat drop")],
    ),
    RuleSet::any(
        "what is not tracked: the way there, and the answers",
        nft!("table inet engine { chain raw { type filter hook prerouting priority raw; meta l4proto { udp, sctp } th dport 8000 notrack;
            tcp sport 7001 notrack; }; }"),
        &["nft add rule inet engine raw icmp type destination-unreachable notrack", FLUSH],
    ),
    RuleSet::any(
        "what the node sends is not tracked",
        nft!("table inet engine { chain out { type filter hook output priority raw; meta l4proto { tcp, udp, sctp } th dport 8000 notrack; }; }"),
        &[FLUSH],
    ),
    RuleSet::any(
        "somebody's zones: one direction, and both",
        nft!("table inet engine { chain raw { type filter hook prerouting priority raw; meta l4proto { tcp, udp } th dport 8000 ct zone set 5; }; }"),
        &[
            "nft add rule inet engine raw meta l4proto { tcp, udp } th sport 7000 ct zone set 5",
            "nft flush chain inet engine raw; nft add rule inet engine raw iifname up0 ct original zone set 5",
        ],
    ),
    RuleSet::any(
        "somebody's translations of host ports, of each family",
        nft!("table inet engine { chain pre { type nat hook prerouting priority dstnat; meta nfproto ipv4 sctp dport 8000 redirect to :9;
            meta nfproto ipv6 meta l4proto { tcp, udp, sctp } th dport 8001 dnat ip6 to [@two6]:7000; }; }"),
        &[FLUSH],
    ),
    RuleSet::any(
        "errors",
        forward!("accept", "icmp type destination-unreachable drop", "icmpv6 type destination-unreachable drop"),
        &[nft!("flush chain inet engine forward\nadd rule inet engine forward ct state related drop")],
    ),
    RuleSet::any(
        "what leaves the node",
        nft!("table inet engine { chain post { type filter hook postrouting priority 0; oifname up0 meta l4proto { tcp, sctp } th dport 7000 drop; };
            chain late { type filter hook postrouting priority 300; oifname up0 ip saddr 192.0.2.1 udp dport 7000 drop; }; }"),
        &["nft add rule inet engine post oifname up0 meta l4proto { icmp, ipv6-icmp } ct state new drop", FLUSH],
    ),
    RuleSet::any(
        "what containers send to the outside",
        forward!("drop", "ct state established,related accept", "iifname \"cni0\" meta l4proto { tcp, sctp } accept", "ct status dnat accept"),
        &["nft insert rule inet engine forward ip saddr @one4 drop"],
    ),
];
