//! What is known of packets that have no state yet, of their headers, and of sets whose elements go.

use super::*;

#[test]
fn at_an_interface_nothing_is_established() {
    let found = found_after(&[
        "ip link add host0 type veth peer name up0",
        "nft 'table inet fw { chain at { type filter hook ingress device host0 priority 0; \
         ct state established,related accept; ip length > 500 drop; }; }'",
    ]);
    assert!(found.is_some_and(|found| found.ends_with("a payload")));
}

#[test]
fn only_the_headers_of_a_flow_are_steady() {
    let of_bridge = |rule: &str| {
        found_after(&[&format!(
            "nft 'table bridge fw {{ chain forward {{ type filter hook forward priority 0; {rule} }}; }}'"
        )])
    };
    for rule in [
        "ether type ip @ll,128,16 > 500 drop;",
        "@ll,96,32 0x08004500 drop;",
        "udp dport 5 @th,104,8 & 0x2 == 0x2 drop;",
        "@th,104,8 & 0x2 == 0x2 limit rate 3/second drop;",
        "meta l4proto { tcp, udp } @th,104,8 0x2 drop;",
        "@nh,72,8 1 limit rate 3/second drop;",
        "ip6 saddr fd00::/8 @nh,72,8 1 limit rate 3/second drop;",
    ] {
        assert!(of_bridge(rule).is_some(), "{rule}");
    }
    for rule in [
        "ether saddr 02:00:00:00:00:01 ether type ip drop;",
        "ether type vlan vlan id 5 drop;",
        "tcp dport 5 @th,104,8 & 0x8 == 0x8 drop;",
        "tcp dport 5 @th,104,8 & 0x2 == 0x2 limit rate 3/second drop;",
        "ip protocol icmp limit rate 3/second drop;",
        "ip6 nexthdr icmpv6 limit rate 3/second drop;",
    ] {
        assert_eq!(of_bridge(rule), None, "{rule}");
    }
}

#[test]
fn what_a_table_of_legacy_iptables_leaves_untracked_is_never_established() {
    let rules = "nft 'table inet fw { chain forward { type filter hook forward priority 0; \
                 ct state established,related accept; ip length > 500 drop; }; }'";
    assert_eq!(found_after(&[rules]), None);
    for program in ["iptables-legacy", "ip6tables-legacy"] {
        let raw = format!("{program} -t raw -A PREROUTING -p udp -j NOTRACK");
        assert!(found_after(&[rules, &raw]).is_some(), "{program}");
    }
}

#[test]
fn a_set_of_states_ends_nothing_whose_elements_go_by_themselves() {
    let found = |set: &str, others: &str| {
        found_after(&[&format!(
            "nft 'table inet fw {{ set begun {{ type ct_state; {set} elements = {{ established, related }}; }}; {others} \
             chain forward {{ type filter hook forward priority 0; ct state @begun accept; ip length > 500 drop; }}; }}'"
        )])
    };
    assert_eq!(found("", ""), None);
    for set in ["flags timeout; timeout 4s;", "flags dynamic; size 9;"] {
        assert!(found(set, "").is_some(), "{set}");
    }
    let writes = "chain input { type filter hook input priority 0; delete @begun { ct state }; };";
    assert!(found("flags timeout;", writes).is_some());
}
