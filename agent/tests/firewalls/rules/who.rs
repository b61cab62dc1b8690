//! Rules about addresses, ports, interfaces and marks, with sets, maps and chains of chains.

use super::{FLUSH, LATE_DROP, LATE_DROP_ENDS, forward, nft};
use crate::trial::RuleSet;

pub(crate) const SETS: &[RuleSet] = &[
    RuleSet::any("everything is refused", forward!("drop", "counter"), &[FLUSH]),
    RuleSet::fast("everything is let through", forward!("accept", "counter"), &[LATE_DROP, FLUSH]),
    RuleSet::fast(
        "ports of both directions",
        forward!("drop", "th dport 7000 accept", "th sport 7000 accept"),
        &["nft insert rule inet engine forward meta l4proto udp drop", FLUSH],
    ),
    RuleSet::fast(
        "a range of ports",
        forward!("accept", "th dport 7001-7199 drop"),
        &["nft add rule inet engine forward th dport 6000-7000 drop", FLUSH],
    ),
    RuleSet::fast(
        "a set of ports, which changes",
        nft!("table inet engine { set ports { type inet_service; elements = { 7000, 7100 }; };
            chain forward { type filter hook forward priority 0; policy drop; th dport @ports accept; th sport @ports accept; }; }"),
        &["nft delete element inet engine ports { 7000 }", "nft add element inet engine ports { 7000, 7001 }"],
    ),
    RuleSet::fast(
        "a set of intervals, which is emptied",
        nft!("table inet engine { set ports { type inet_service; flags interval; elements = { 7000-7050, 7100 }; };
            chain forward { type filter hook forward priority 0; policy drop; th dport @ports accept; th sport @ports accept; }; }"),
        &["nft flush set inet engine ports", FLUSH],
    ),
    RuleSet::fast(
        "a set of pairs",
        nft!("table inet engine { set pairs { type ipv4_addr . ipv4_addr . inet_service; elements = { @one4 . @two4 . 7000 }; };
            chain forward { type filter hook forward priority 0; meta nfproto ipv4 jump four; };
            chain four { ip saddr . ip daddr . th dport @pairs accept; ip daddr . ip saddr . th sport @pairs accept; drop; }; }"),
        &["nft delete element inet engine pairs { @one4 . @two4 . 7000 }"],
    ),
    RuleSet::fast(
        "a map of ports to chains, which changes",
        nft!("table inet engine { chain allow { accept; }; chain refuse { drop; };
            map ports { type inet_service : verdict; elements = { 7000 : jump allow, 7001 : jump refuse }; };
            chain forward { type filter hook forward priority 0; th dport vmap @ports; }; }"),
        &["nft 'delete element inet engine ports { 7000 }; add element inet engine ports { 7000 : jump refuse }'"],
    ),
    RuleSet::fast(
        "marks by a map",
        nft!("table inet engine { chain pre { type filter hook prerouting priority mangle;
            meta mark set th dport map { 7000 : 0x1, 7001 : 0x2 }; };
            chain forward { type filter hook forward priority 0; meta mark 0x2 drop; }; }"),
        &["nft add rule inet engine forward meta mark 0x1 drop"],
    ),
    RuleSet::fast(
        "prerouting, by address",
        nft!("table inet engine { chain pre { type filter hook prerouting priority -300; ip saddr @three4 drop; ip6 saddr @three6 drop; }; }"),
        &["nft add rule inet engine pre ip saddr @one4 drop"],
    ),
    RuleSet::fast(
        "postrouting, by address",
        nft!("table inet engine { chain post { type filter hook postrouting priority 100; ip daddr @two4 udp dport 7001 drop; tcp dport 7001 drop; }; }"),
        &["nft insert rule inet engine post ip daddr @two4 drop", FLUSH],
    ),
    RuleSet::fast(
        "refusals that are told",
        forward!("accept", "tcp dport 7001 reject with tcp reset", "udp dport 7001 reject with icmpx port-unreachable"),
        &["nft add rule inet engine forward udp dport 7000 reject"],
    ),
    RuleSet::fast(
        "two chains, of which the second refuses",
        nft!("table inet engine { chain early { type filter hook forward priority -1; accept; };
            chain forward { type filter hook forward priority 1; th dport 7001 drop; }; }"),
        &["nft add rule inet engine forward th sport 7000 drop"],
    ),
    RuleSet::fast(
        "chains of chains",
        nft!("table inet engine { chain c { th dport 7001 drop; return; }; chain b { goto c; drop; };
            chain a { jump b; th dport 7100 drop; }; chain forward { type filter hook forward priority 0; jump a; }; }"),
        &["nft flush chain inet engine c", "nft add rule inet engine c drop"],
    ),
    RuleSet::fast(
        "what is logged",
        forward!("accept", "th dport 7001 log prefix \"refused \" group 3 drop", "log group 3", "counter"),
        &[LATE_DROP, LATE_DROP_ENDS],
    ),
    RuleSet::fast(
        "a segment's flags",
        forward!("accept", "tcp dport 7001 tcp flags & (syn | ack) == syn drop", "tcp flags & (fin | syn | rst) == rst counter"),
        &["nft 'add rule inet engine forward tcp dport 7000 tcp flags & (fin | syn | rst | ack) == fin | ack drop'"],
    ),
    RuleSet::fast(
        "fragments",
        nft!("table ip engine { chain pre { type filter hook prerouting priority -500; ip frag-off & 0x1fff != 0 drop; }; }"),
        &[FLUSH],
    ),
    RuleSet::fast(
        "protocols",
        forward!("accept", "meta l4proto sctp drop", "icmp type echo-request drop", "icmpv6 type destination-unreachable drop"),
        &["nft add rule inet engine forward meta l4proto 17 drop"],
    ),
    RuleSet::fast(
        "the interface and the packet's kind",
        forward!("accept", "meta iifname != \"cni0\" drop", "meta pkttype multicast drop", "fib saddr type local drop"),
        &["nft add rule inet engine forward meta oifname \"cni0\" udp dport 7000 drop"],
    ),
    RuleSet::fast(
        "what enters the node, and leaves it",
        nft!("table inet engine { chain input { type filter hook input priority 0; udp dport 7001 drop; };
            chain output { type filter hook output priority 0; meta l4proto icmp drop; }; }"),
        &["nft add rule inet engine input udp dport 7000 drop", FLUSH],
    ),
    RuleSet::fast("a mark that nobody has set", forward!("accept", "meta mark != 0 drop", "ct mark != 0 drop"), &[LATE_DROP]),
];
