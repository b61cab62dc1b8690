//! Rules that come and go while flows last.

use super::{FLUSH, LATE_DROP, LATE_DROP_ENDS, nft};
use crate::trial::RuleSet;

/// Replaced in one transaction.
const REPLACES: &str = nft!("add table inet engine\ndelete table inet engine
    table inet engine { chain forward { type filter hook forward priority 0; policy drop; ct state invalid drop;
    ct state established,related accept; th dport { 7000, 7100 } accept; meta l4proto { icmp, ipv6-icmp } accept; }; }");

const DROPS_FOR_A_MOMENT: &str = nft!("insert rule inet engine forward drop comment \"moment\"");

const LEGACY: &str = "IPT=legacy; both -A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
    both -A FORWARD -p udp --dport 7001 -j DROP; both -A FORWARD -p tcp --dport 7001 -j DROP";

pub(crate) const SETS: &[RuleSet] = &[
    RuleSet::any("an engine that commits all the time", REPLACES, &[LATE_DROP, LATE_DROP_ENDS]).meanwhile(REPLACES),
    RuleSet::any(
        "an engine that changes a set all the time",
        nft!("table inet engine { set ports { type inet_service; elements = { 7000 }; }; set other { type inet_service; };
            chain forward { type filter hook forward priority 0; policy drop; th dport @ports accept; th sport @ports accept; }; }"),
        &["nft flush set inet engine ports"],
    )
    .meanwhile("nft 'add element inet engine other { 1 }; delete element inet engine other { 1 }'"),
    RuleSet::any("legacy iptables that is called all the time", LEGACY, &["IPT=legacy; both -I FORWARD -p udp -j DROP"])
        .meanwhile("iptables-legacy -w -A OUTPUT -p 99 -j DROP; iptables-legacy -w -D OUTPUT -p 99 -j DROP"),
    RuleSet::fast("everything is dropped for a moment", REPLACES, &[DROPS_FOR_A_MOMENT, REPLACES, DROPS_FOR_A_MOMENT, REPLACES]),
    RuleSet::fast("rules go and come", REPLACES, &[FLUSH, REPLACES, FLUSH, LATE_DROP]),
    RuleSet::fast("legacy rules go and come", LEGACY, &["IPT=legacy; both -F FORWARD", LEGACY, "IPT=legacy; both -P FORWARD DROP"]),
    RuleSet::any(
        "connections that are not picked up in their middle",
        "echo 0 >/proc/sys/net/netfilter/nf_conntrack_tcp_loose
        nft -f - <<'END'
        table inet engine { chain forward { type filter hook forward priority 0; ct state invalid drop; }; }
END",
        &[FLUSH, REPLACES, "echo 1 >/proc/sys/net/netfilter/nf_conntrack_tcp_loose"],
    ),
    RuleSet::any(
        "connection tracking that forgets soon",
        "for it in udp_timeout udp_timeout_stream; do echo 1 >/proc/sys/net/netfilter/nf_conntrack_$it; done
        nft -f - <<'END'
        table inet engine { chain forward { type filter hook forward priority 0; policy drop; ct state established accept; ct state new udp dport 7000 accept; }; }
END",
        &["sleep 2", "echo 30 >/proc/sys/net/netfilter/nf_conntrack_udp_timeout; echo 120 >/proc/sys/net/netfilter/nf_conntrack_udp_timeout_stream"],
    ),
];
