//! Clusters, and what they mean for the node `a`.
#![allow(clippy::unwrap_used, reason = "a test")]

use super::{Member, Members, Plan};
use crate::config::{ClusterOptions, Routes};

fn members(nodes: &[(&str, &[&str], &[&str])]) -> Members {
    let member = |pod_cidrs: &[&str], addresses: &[&str]| Member {
        pod_cidrs: pod_cidrs.iter().map(|text| text.parse().unwrap()).collect(),
        created: 0,
        addresses: addresses.iter().map(|text| text.parse().unwrap()).collect(),
    };
    let nodes = nodes.iter().map(|(name, cidrs, addresses)| ((*name).to_owned(), member(cidrs, addresses)));
    Members(nodes.collect())
}

fn plan(nodes: &[(&str, &[&str], &[&str])]) -> Plan {
    Plan::of(&ClusterOptions::default(), "a", &members(nodes))
}

fn texts<T: ToString>(all: &[T]) -> Vec<String> {
    all.iter().map(ToString::to_string).collect()
}

#[test]
fn pods_of_other_nodes_are_behind_the_nodes_addresses_in_both_families() {
    let plan = plan(&[
        ("a", &["10.244.0.0/24", "fd01::/64"], &["192.0.2.1", "2001:db8::1"]),
        ("b", &["10.244.1.0/24", "fd02::/64"], &["192.0.2.2", "2001:db8::2"]),
    ]);
    assert_eq!(texts(&plan.own), ["10.244.0.0/24", "fd01::/64"]);
    let hops: Vec<_> = plan.hops.iter().map(|hop| format!("{} {}", hop.pods, hop.node.unwrap())).collect();
    assert_eq!(hops, ["10.244.1.0/24 192.0.2.2", "fd02::/64 2001:db8::2"]);
    assert_eq!(texts(&plan.pods), ["10.244.0.0/23", "fd01::/64", "fd02::/64"], "neighbours are one prefix");
    assert!(plan.warnings.is_empty(), "{:?}", plan.warnings);
}

#[test]
fn what_cannot_be_is_a_warning_and_leads_nowhere() {
    let overlapping = plan(&[
        ("a", &["10.244.0.0/24"], &["192.0.2.1"]),
        ("b", &["10.244.0.0/16"], &["192.0.2.2"]),
        ("c", &["10.245.0.0/24"], &["192.0.2.3"]),
        ("d", &["10.245.0.0/24"], &["192.0.2.4"]),
        ("e", &["10.246.0.0/24"], &["2001:db8::5"]),
        ("f", &[], &["192.0.2.6"]),
    ]);
    assert_eq!(texts(&overlapping.warnings).len(), 3, "{:?}", overlapping.warnings);
    assert!(overlapping.warnings[0].text.contains("overlaps with 10.244.0.0/24 of a"));
    assert!(overlapping.warnings[1].text.contains("of the node d"), "the first by name has it");
    assert!(overlapping.warnings[2].text.contains("no InternalIP"));
    assert_eq!(overlapping.hops.len(), 1);
    let nothing = plan(&[("a", &[], &["192.0.2.1"]), ("b", &["10.244.1.0/24"], &["192.0.2.2"])]);
    assert!(nothing.own.is_empty() && nothing.warnings[0].text.contains("no pod CIDR"), "{nothing:?}");
}

#[test]
fn who_came_first_has_a_prefix_and_nobody_leads_the_nodes_own_traffic_away() {
    let mut nodes = members(&[
        ("a", &["10.244.0.0/24"], &["192.0.2.1"]),
        ("aaa", &["10.244.1.0/24"], &["192.0.2.9"]),
        ("b", &["10.244.1.0/24"], &["192.0.2.2"]),
        ("lan", &["192.0.2.0/24"], &["192.0.2.3"]),
        ("all", &["0.0.0.0/0", "::ffff:10.9.0.0/112"], &["192.0.2.4"]),
    ]);
    nodes.0.get_mut("aaa").unwrap().created = 7;
    let plan = Plan::of(&ClusterOptions::default(), "a", &nodes);
    let hops: Vec<_> = plan.hops.iter().map(|hop| format!("{} {}", hop.pods, hop.node.unwrap())).collect();
    assert_eq!(hops, ["10.244.1.0/24 192.0.2.2"]);
    assert_eq!(plan.warnings.len(), 4, "{:?}", plan.warnings);
    assert_eq!(texts(&plan.pods), ["10.244.0.0/23"]);
}

#[test]
fn the_configuration_wins_over_the_api_server_and_may_turn_routes_off() {
    let nodes = members(&[("a", &["10.1.0.0/24"], &[]), ("b", &["10.2.0.0/24"], &["192.0.2.2"])]);
    let options = ClusterOptions {
        pod_cidrs: vec!["10.9.0.0/24".parse().unwrap()],
        routes: Routes::Off,
        ..ClusterOptions::default()
    };
    let plan = Plan::of(&options, "a", &nodes);
    assert_eq!((texts(&plan.own), plan.hops.len()), (vec!["10.9.0.0/24".to_owned()], 0));
    assert_eq!(texts(&plan.pods), ["10.2.0.0/24", "10.9.0.0/24"]);
}

#[test]
fn a_tunnel_goes_between_first_addresses_of_one_family() {
    let nodes = members(&[
        ("a", &["10.1.0.0/24", "fd01::/64"], &["192.0.2.1", "2001:db8::1"]),
        ("b", &["10.2.0.0/24", "fd02::/64"], &["192.0.2.2"]),
        ("c", &["10.3.0.0/24"], &["2001:db8::3", "192.0.2.3"]),
    ]);
    let plan = |routes| Plan::of(&ClusterOptions { routes, ..ClusterOptions::default() }, "a", &nodes);
    let led = |plan: &Plan| plan.hops.iter().map(|hop| hop.pods.to_string()).collect::<Vec<_>>();
    let vxlan = plan(Routes::Vxlan);
    assert_eq!(led(&vxlan), ["10.2.0.0/24", "fd02::/64"], "whatever the pods' family");
    assert!(vxlan.hops.iter().all(|hop| hop.tunnel == Some("192.0.2.2".parse().unwrap())));
    assert_eq!(vxlan.local, Some("192.0.2.1".parse().unwrap()));
    assert!(
        vxlan.warnings.len() == 1 && vxlan.warnings[0].text.contains("first InternalIP of the node c"),
        "{vxlan:?}"
    );
    let auto = plan(Routes::Auto);
    assert_eq!(led(&auto), ["10.2.0.0/24", "fd02::/64", "10.3.0.0/24"]);
    assert_eq!(auto.hops[2].tunnel, None);
    assert_eq!(led(&plan(Routes::Host)), ["10.2.0.0/24", "10.3.0.0/24"]);
}

#[test]
fn five_thousand_nodes_fit_into_the_list() {
    // Every second /24, so that none joins its neighbour.
    let cidrs: Vec<_> = (0..5000).map(|n: u32| format!("10.{}.{}.0/24", n * 2 / 256, n * 2 % 256)).collect();
    let nodes = cidrs.iter().enumerate().map(|(n, cidr)| {
        let member = Member { pod_cidrs: vec![cidr.parse().unwrap()], ..Member::default() };
        (format!("n{n}"), member)
    });
    let plan = Plan::of(
        &ClusterOptions { routes: Routes::Off, ..ClusterOptions::default() },
        "n0",
        &Members(nodes.collect()),
    );
    assert!(plan.pods.len() <= 256);
    assert!(
        plan.warnings.iter().any(|warning| warning.text.contains("more than 256")),
        "{:?}",
        plan.warnings
    );
    let held =
        |cidr: &String| plan.pods.iter().any(|pods| pods.contains(&cidr.parse::<ipnet::IpNet>().unwrap()));
    assert!(cidrs.iter().all(held));
}
