//! Rules about host ports: what firewalls have for published ones, and each hook that packets meet on their way there.

use super::{FLUSH, forward, nft};
use crate::trial::RuleSet;

/// Shapes that let host ports in by what connection tracking says of them, or ask before that.
pub(crate) const SETS: &[RuleSet] = &[
    RuleSet::any(
        "firewalld's: what was led is let through",
        forward!("drop", "ct state established,related accept", "ct status dnat accept", "ct state invalid drop"),
        &[nft!("insert rule inet engine forward th dport 7001 drop")],
    ),
    RuleSet::any(
        "Docker's: what goes to a bridge is dropped unless it was published",
        "both -N DOCKER; both -A FORWARD -o cni0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT; both -A FORWARD -o cni0 -j DOCKER
        both -A FORWARD -i cni0 ! -o cni0 -j ACCEPT; both -A DOCKER ! -i cni0 -p tcp --dport 7000 -j ACCEPT; both -A DOCKER -j DROP",
        &["both -I FORWARD -p tcp -m conntrack --ctorigdstport 8000 --ctdir ORIGINAL -j DROP"],
    ),
    RuleSet::any(
        "raw: a port of the node",
        nft!("table inet engine { chain pre { type filter hook prerouting priority raw; th dport 8001 drop; }; }"),
        &[nft!("add rule inet engine pre iifname up0 th dport 8000 drop")],
    ),
    RuleSet::any(
        "mangle: who comes from outside",
        nft!("table inet engine { chain pre { type filter hook prerouting priority mangle; ip saddr 192.0.2.9 drop; ip6 saddr 2001:db8::9 drop; }; }"),
        &[FLUSH],
    ),
    RuleSet::any(
        "netdev: the way in",
        nft!("table netdev engine { chain in { type filter hook ingress device up0 priority 0; udp dport 8000 drop; tcp dport 8001 drop; }; }"),
        &[],
    ),
    RuleSet::any(
        "postrouting: the container's port",
        nft!("table inet engine { chain post { type filter hook postrouting priority 0; oifname cni0 tcp dport 7000 drop; }; }"),
        &[nft!("add rule inet engine post ct status snat drop")],
    ),
    RuleSet::any(
        "the node's own",
        nft!("table inet engine { chain out { type filter hook output priority 0; oifname cni0 th dport 7001 drop; };
            chain raw { type filter hook output priority raw; udp dport 8000 drop; }; }"),
        &[],
    ),
    RuleSet::any(
        "answers",
        forward!("accept", "ct direction reply udp sport 7000 drop", "oifname up0 tcp sport 7001 drop"),
        &[nft!("add rule inet engine forward tcp sport 7000 ct direction reply drop")],
    ),
    RuleSet::any(
        "what is not tracked is not led",
        nft!("table inet engine { chain pre { type filter hook prerouting priority raw; tcp dport 8000 notrack; }; }"),
        &[],
    ),
    RuleSet::any(
        "somebody's own translation of a host port comes first",
        nft!("table ip engine { chain pre { type nat hook prerouting priority dstnat; udp dport 8000 redirect to :9; tcp dport 8000 dnat to @two4:7001; }; }"),
        &[FLUSH],
    ),
];

/// What refuses one of the ports, and lets the rest through.
pub(crate) const REFUSES: &str = forward!("accept", "th dport 7001 drop");
