//! Pods of two nodes, which see each other's own addresses, and whom the world sees as their nodes.

use std::net::{IpAddr, SocketAddr};

use shunt_lab::{Conversation, Protocol};

use crate::world::{Member, OUTSIDE, World, seen};

/// Two nodes that know each other.
pub(crate) fn two() -> World {
    let world = World::new(&["a", "b"], "");
    (0..2).for_each(|index| world.join(index));
    for (one, other) in [(0, 1), (1, 0)] {
        let (one, other) = (&world.members[one], &world.members[other]);
        one.until("the routes are there", || one.routes() == Member::routes_to(other));
        one.network();
    }
    world
}

#[test]
fn pods_of_two_nodes_see_each_others_own_addresses_and_the_world_their_nodes() {
    let mut world = two();
    let pods = [world.pod(0, "one"), world.pod(1, "two")];
    world.members.iter().for_each(|member| member.node.settle().unwrap());
    let inside = |index: usize| world.sandboxes[pods[index]].namespace();
    for (family, is_v4) in [true, false].into_iter().enumerate() {
        for (client, server, port) in [(0, 1, 7000), (1, 0, 7001)] {
            let to = SocketAddr::new(world.address(pods[server], is_v4), port);
            let own = world.address(pods[client], is_v4);
            assert_eq!(seen(inside(client), inside(server), to), [own, own], "{client} to {to}");
            let out = SocketAddr::new(OUTSIDE[family].parse().unwrap(), port);
            let node: IpAddr = world.members[client].addresses[family].parse().unwrap();
            assert_eq!(seen(inside(client), &world.outside, out), [node, node], "{client} to {out}");
        }
        let echo = world.sandboxes[pods[1]].echo(world.address(pods[1], is_v4), 7002).unwrap();
        for protocol in [Protocol::Tcp, Protocol::Udp] {
            let mut talk = Conversation::open(inside(0), protocol, echo.address()).unwrap();
            talk.chat(100, 1200).unwrap();
        }
    }
}

#[test]
fn the_nodes_network_is_said_to_be_there_once() {
    let world = two();
    for member in &world.members {
        let patches = || {
            let nodes = world.server.nodes();
            nodes.patches.iter().filter(|(name, _)| name == member.name).count()
        };
        member.until("NetworkUnavailable is cleared", || patches() > 0);
    }
    // Each has heard of its own patch by now, and looked again.
    std::thread::sleep(std::time::Duration::from_secs(6));
    let nodes = world.server.nodes();
    assert_eq!(nodes.patches.len(), 2, "{:?}", nodes.patches);
    let condition = &nodes.patches[0].1["status"]["conditions"][0];
    assert_eq!((&condition["type"], &condition["status"]), (&"NetworkUnavailable".into(), &"False".into()));
}

#[test]
fn pods_that_run_see_a_node_that_comes_later() {
    let mut world = World::new(&["a", "b"], "");
    world.join(0);
    let early = world.pod(0, "early");
    world.join(1);
    let late = world.pod(1, "late");
    let (a, b) = (&world.members[0], &world.members[1]);
    a.until("the new node's pods are reached", || a.routes() == Member::routes_to(b));
    let exempted = || a.node.namespace().command("nft", &["list", "ruleset"]).unwrap().contains("10.244.2.0");
    a.until("the running pod is told", || {
        // Two neighbouring prefixes may be one range.
        exempted()
            || a.written().unwrap()["plugins"][0]["nonMasqueradeCIDRs"].to_string().contains("10.244.2")
    });
    for is_v4 in [true, false] {
        let to = SocketAddr::new(world.address(late, is_v4), 7000);
        let own = world.address(early, is_v4);
        let inside = |pod: usize| world.sandboxes[pod].namespace();
        assert_eq!(seen(inside(early), inside(late), to), [own, own], "{to}");
    }
    // And one that goes.
    world.server.nodes().remove("b");
    a.until("its routes go", || a.routes().is_empty());
    a.until("its prefix goes", || {
        !a.written().unwrap()["plugins"][0]["nonMasqueradeCIDRs"].to_string().contains("10.244.2")
    });
    a.until("the running pod is told", || !exempted());
}
