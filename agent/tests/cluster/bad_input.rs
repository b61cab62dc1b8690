//! What cannot be: it is said, and pods that run are left alone.

use std::fs;
use std::net::IpAddr;

use crate::world::{Member, OUTSIDE, World, seen};

#[test]
fn a_node_without_a_pod_cidr_gets_no_configuration_until_it_has_one() {
    let world = World::new(&["a"], "");
    let a = &world.members[0];
    world.server.nodes().put("a", &[], &["10.99.0.1"]);
    a.until("it says so", || a.warns("the node a has no pod CIDR"));
    world.until_told(0, "PodCIDRMissing", "--allocate-node-cidrs");
    assert!(a.written().is_none());
    world.join(0);
    a.network();
    a.until("nothing is wrong any more", || !a.warns("no pod CIDR"));
}

#[test]
fn a_pod_cidr_that_cannot_be_one_is_told_and_leaves_pods_alone() {
    let mut world = World::new(&["a"], "");
    world.server.nodes().put("a", &["127.0.0.0/8"], &["10.99.0.1"]);
    let a = &world.members[0];
    a.until("it says so", || a.warns("the pod CIDR 127.0.0.0/8 of the node a"));
    world.until_told(0, "PodCIDRUnusable", "127.0.0.0/8 of the node a");
    assert!(a.written().is_none());
    assert!(world.server.nodes().patches.is_empty(), "the network is not there");
    world.join(0);
    let pod = world.pod(0, "one");
    let a = &world.members[0];
    a.until("nothing is wrong any more", || !a.warns("127.0.0.0/8"));
    // It is a running node's by mistake.
    let network = a.written();
    world.server.nodes().put("a", &["127.0.0.0/8"], &["10.99.0.1"]);
    a.until("it says so again", || a.warns("the pod CIDR 127.0.0.0/8 of the node a"));
    assert_eq!(a.written(), network);
    let outside: IpAddr = OUTSIDE[0].parse().unwrap();
    seen(world.sandboxes[pod].namespace(), &world.outside, (outside, 7000).into());
}

#[test]
fn without_the_plugin_or_behind_another_configuration_it_says_so() {
    let world = World::new(&["a"], "");
    let a = &world.members[0];
    let plugin = a.node.plugins().join("shunt");
    let aside = plugin.with_extension("aside");
    fs::rename(&plugin, &aside).unwrap();
    world.join(0);
    a.until("the plugin is missing", || a.warns("install the plugin"));
    world.until_told(0, "PluginMissing", "install the plugin");
    assert!(a.written().is_none());
    assert!(world.server.nodes().patches.is_empty(), "the network is not there");
    fs::rename(&aside, &plugin).unwrap();
    a.network();
    fs::write(a.directory.join("05-other.conflist"), "{}").unwrap();
    a.until("another one comes first", || a.warns("05-other.conflist"));
    world.until_told(0, "ConfigurationShadowed", "05-other.conflist");
    assert!(a.node.agent().status().unwrap().healthy);
}

#[test]
fn overlapping_pods_and_nodes_beyond_the_link_are_told_and_led_nowhere() {
    let mut world = World::new(&["a", "b"], "routes = 'host'");
    world.join(0);
    let pod = world.pod(0, "one");
    world.server.nodes().put("over", &["10.244.0.0/16"], &["10.99.0.7"]);
    world.server.nodes().put("far", &["10.246.0.0/24"], &["192.0.2.7"]);
    let (a, b) = (&world.members[0], &world.members[1]);
    a.until("it says so", || a.warns("10.244.0.0/16 of the node over overlaps") && a.warns("192.0.2.7"));
    world.until_told(0, "PodCIDROverlaps", "10.244.0.0/16 of the node over overlaps with 10.244.1.0/24 of a");
    assert_eq!(a.routes(), Vec::<String>::new());
    a.node.namespace().command("ip", &["route", "add", "192.0.2.0/24", "via", "10.99.0.9"]).unwrap();
    a.until("it says why", || a.warns("192.0.2.7 is not on the link but behind 10.99.0.9"));
    // A node that changes its address.
    world.server.nodes().remove("over");
    world.join(1);
    a.until("its pods are reached", || a.routes() == Member::routes_to(b));
    world.server.nodes().put("b", &["10.244.2.0/24"], &["10.99.0.77"]);
    a.until("they are reached by the new address", || a.routes() == ["10.244.2.0/24 via 10.99.0.77"]);
    // Only the node itself tells of it.
    world.until_told(1, "NodeChanged", "10.99.0.77");
    assert!(world.server.nodes().told("a", "NodeChanged").is_empty());
    assert_eq!(a.node.agent().status().unwrap().attachments, 1);
    assert!(!world.sandboxes[pod].addresses().is_empty());
}

#[test]
fn a_server_that_forbids_is_told_and_heeded_when_it_no_longer_does() {
    let world = World::new(&["a"], "");
    world.server.nodes().forbids = true;
    let a = &world.members[0];
    a.until("it says so", || a.warns("the nodes are not watched") && a.warns("403"));
    world.server.nodes().forbids = false;
    world.join(0);
    a.network();
    world.server.nodes().end_watches();
    a.until("nothing is wrong any more", || !a.warns("not watched"));
}

/// The gateways of IPv4 on the pods' bridge.
fn gateways(member: &Member) -> Vec<String> {
    let shown = member.ip(&["-4", "-oneline", "address", "show", "dev", "cni0"]);
    let mut found: Vec<_> =
        shown.lines().map(|line| line.split_whitespace().nth(3).unwrap().to_owned()).collect();
    found.sort();
    found
}

#[test]
fn a_node_with_another_pod_cidr_has_both_gateways_while_pods_of_the_earlier_one_live() {
    let mut world = World::new(&["a"], "");
    world.join(0);
    let old = world.pod(0, "old");
    world.server.nodes().put("a", &["10.244.7.0/24", "fd24:0:0:7::/64"], &["10.99.0.1", "fd99::1"]);
    let is_written =
        |a: &Member| a.written().is_some_and(|written| written.to_string().contains("10.244.7.0"));
    let a = &world.members[0];
    a.until("it is the new one", || is_written(a));
    let new = world.pod(0, "new");
    let a = &world.members[0];
    a.until("it says so", || a.warns("1 pods have addresses of this node's earlier pod CIDR 10.244.1.0/24"));
    assert_eq!(gateways(a), ["10.244.1.1/24", "10.244.7.1/24"]);
    let inside = |pod: usize| world.sandboxes[pod].namespace();
    for is_v4 in [true, false] {
        for (one, other) in [(old, new), (new, old)] {
            seen(inside(one), inside(other), (world.address(other, is_v4), 7000).into());
        }
        let outside: IpAddr = OUTSIDE[usize::from(!is_v4)].parse().unwrap();
        let node: IpAddr = a.addresses[usize::from(!is_v4)].parse().unwrap();
        for pod in [old, new] {
            let by = seen(inside(pod), &world.outside, (outside, 7000).into());
            assert_eq!(by, [node; 2]);
        }
    }
    assert!(a.node.agent().status().unwrap().healthy);

    // The last one of the earlier prefix takes its gateway along.
    let network = a.network();
    world.sandboxes[old].delete(&a.node, &network).unwrap();
    a.until("there is one", || gateways(a) == ["10.244.7.1/24"] && !a.warns("earlier pod CIDR"));
    assert!(!a.ip(&["-6", "address", "show", "dev", "cni0"]).contains("fd24:0:0:1::1"));
    let newest = world.pod(0, "newest");
    let inside = |pod: usize| world.sandboxes[pod].namespace();
    seen(inside(newest), inside(new), (world.address(new, true), 7001).into());
}

#[test]
fn a_gateway_that_the_cluster_never_had_is_in_the_way_and_stays() {
    let world = World::new(&["a"], "");
    let a = &world.members[0];
    a.ip(&["link", "add", "cni0", "alias", "shunt", "type", "bridge"]);
    a.ip(&["address", "add", "10.9.0.1/24", "dev", "cni0"]);
    world.join(0);
    a.until("it says so", || a.warns("cni0 has 10.9.0.1/24, and every new pod fails"));
    world.until_told(0, "BridgeAddress", "ip address delete 10.9.0.1/24 dev cni0");
    assert_eq!(gateways(a), ["10.9.0.1/24"]);
    a.ip(&["address", "delete", "10.9.0.1/24", "dev", "cni0"]);
    a.until("nothing is wrong any more", || !a.warns("every new pod fails"));
}
