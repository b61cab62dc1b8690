//! The rules of firewalls that host ports have beside them on many nodes, as these write them.

use super::nft;
use crate::trial::RuleSet;

/// firewalld's, by nf_tables: the zone of the containers' bridge is trusted, that of the outside lets pings and ssh in.
const FIREWALLD: &str = nft!("table inet firewalld {
    chain mangle_PREROUTING { type filter hook prerouting priority mangle + 10; policy accept; jump mangle_PRE_public; };
    chain mangle_PRE_public { };
    chain nat_PREROUTING { type nat hook prerouting priority dstnat + 10; policy accept; jump nat_PRE_public; };
    chain nat_PRE_public { };
    chain nat_OUTPUT { type nat hook output priority -90; policy accept; };
    chain nat_POSTROUTING { type nat hook postrouting priority srcnat + 10; policy accept; oifname \"lo\" return; };
    chain filter_PREROUTING { type filter hook prerouting priority filter + 10; policy accept;
        icmpv6 type { nd-router-advert, nd-neighbor-solicit } accept; meta nfproto ipv6 fib saddr . mark . iif oif missing drop; };
    chain filter_INPUT { type filter hook input priority filter + 10; policy accept; ct state { established, related } accept;
        ct status dnat accept; iifname \"lo\" accept; ct state invalid drop; jump filter_IN_public; reject with icmpx admin-prohibited; };
    chain filter_FORWARD { type filter hook forward priority filter + 10; policy accept; ct state { established, related } accept;
        ct status dnat accept; iifname \"lo\" accept; ct state invalid drop;
        ip6 daddr { ::/96, ::ffff:0.0.0.0/96, 2002::/24 } reject with icmpv6 addr-unreachable;
        iifname \"cni0\" goto filter_FWD_trusted; jump filter_FWD_public; reject with icmpx admin-prohibited; };
    chain filter_OUTPUT { type filter hook output priority filter + 10; policy accept; ct state { established, related } accept;
        oifname \"lo\" accept; ip6 daddr { ::/96, ::ffff:0.0.0.0/96 } reject with icmpv6 addr-unreachable; };
    chain filter_IN_public { meta l4proto { icmp, ipv6-icmp } accept; tcp dport 22 ct state { new, untracked } accept; };
    chain filter_FWD_public { meta l4proto { icmp, ipv6-icmp } accept; };
    chain filter_FWD_trusted { accept; };
}");

/// Its drop zone has the host outside.
const DROP_ZONE: &str = nft!(
    "insert rule inet firewalld mangle_PRE_public ip saddr 192.0.2.9 drop
    insert rule inet firewalld mangle_PRE_public ip6 saddr 2001:db8::9 drop"
);

/// Its panic mode: nothing passes but what was let through before.
const STRICT: &str = nft!(
    "flush chain inet firewalld mangle_PRE_public
    flush chain inet firewalld filter_FORWARD
    add rule inet firewalld filter_FORWARD ct state { established, related } accept
    add rule inet firewalld filter_FORWARD reject with icmpx admin-prohibited"
);

/// CrowdSec's bouncer: sources that are blocked, by a table of each family.
const CROWDSEC: &str = nft!("table ip crowdsec { set blacklists { type ipv4_addr; flags timeout; };
    chain input { type filter hook input priority filter - 10; policy accept; ip saddr @blacklists drop; };
    chain forward { type filter hook forward priority filter - 10; policy accept; ip saddr @blacklists drop; }; }
    table ip6 crowdsec6 { set blacklists { type ipv6_addr; flags timeout; };
    chain input { type filter hook input priority filter - 10; policy accept; ip6 saddr @blacklists drop; };
    chain forward { type filter hook forward priority filter - 10; policy accept; ip6 saddr @blacklists drop; }; }");

pub(crate) const SETS: &[RuleSet] = &[
    RuleSet::any("firewalld's tables", FIREWALLD, &[DROP_ZONE, STRICT]),
    RuleSet::any(
        "CrowdSec's tables",
        CROWDSEC,
        &[
            nft!(
                "add element ip crowdsec blacklists { 192.0.2.9 timeout 4h, @one4 timeout 4h }
            add element ip6 crowdsec6 blacklists { 2001:db8::9 timeout 4h }"
            ),
            nft!("delete element ip crowdsec blacklists { 192.0.2.9 }"),
        ],
    ),
];
