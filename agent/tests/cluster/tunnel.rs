//! Pods of nodes that reach each other through the VXLAN device, with their own addresses.

use std::net::{IpAddr, SocketAddr};

use shunt_lab::{Conversation, Protocol};

use crate::world::{Member, World, seen};

pub(crate) const DEVICE: &str = "shunt-vxlan";

pub(crate) const VXLAN: &str = "routes = 'vxlan'";

/// Two nodes on one link that know each other, and use the device nevertheless.
pub(crate) fn two(options: &str) -> World {
    let world = World::new(&["a", "b"], options);
    (0..2).for_each(|index| world.join(index));
    know_each_other(&world);
    world
}

fn know_each_other(world: &World) {
    for (one, other) in [(0, 1), (1, 0)] {
        let (one, other) = (&world.members[one], &world.members[other]);
        one.until("the routes are there", || one.routes() == Member::tunnels_to(other));
    }
}

/// Two pods see each other's own addresses, and packets of any length arrive.
pub(crate) fn talk(world: &World, client: usize, server: usize) {
    talk_within(world, client, server, 8000);
}

/// The same with no longer datagrams. Where nodes differ in their MTU, a kernel that filters what is bridged (`br_netfilter`) puts IPv6
/// fragments together on their way, and does not know any more how long they were.
pub(crate) fn talk_within(world: &World, client: usize, server: usize, longest: usize) {
    let inside = |pod: usize| world.sandboxes[pod].namespace();
    for (is_v4, port) in [(true, 7000), (false, 7001)] {
        let to = SocketAddr::new(world.address(server, is_v4), port);
        let own = world.address(client, is_v4);
        assert_eq!(seen(inside(client), inside(server), to), [own, own], "{to}");
        let echo = world.sandboxes[server].echo(to.ip(), port + 10).unwrap();
        for protocol in [Protocol::Tcp, Protocol::Udp] {
            let mut talk = Conversation::open(inside(client), protocol, echo.address()).unwrap();
            // As small as can be, as long as a packet, and in several.
            for length in [1, 1400, 8000].into_iter().filter(|l| protocol == Protocol::Tcp || *l <= longest) {
                talk.chat(20, length).unwrap();
            }
        }
    }
}

/// The MTU of new pods, as the configuration has it.
pub(crate) fn mtu(member: &Member) -> Option<u64> {
    member.written()?["plugins"][0]["mtu"].as_u64()
}

#[test]
fn pods_and_nodes_reach_pods_through_the_tunnel() {
    let mut world = two(VXLAN);
    let pods = [world.pod(0, "one"), world.pod(1, "two")];
    for (client, server) in [(0, 1), (1, 0)] {
        talk(&world, pods[client], pods[server]);
    }
    let a = &world.members[0];
    assert_eq!(mtu(a), Some(1450));
    let inner = world.sandboxes[pods[0]].namespace().command("ip", &["-o", "link", "show", "eth0"]).unwrap();
    assert!(inner.contains("mtu 1450"), "{inner}");
    // What the node itself says comes by the same way, and so does the answer.
    for (is_v4, own) in [(true, "10.244.1.0"), (false, "fd24:0:0:1::")] {
        let to = SocketAddr::new(world.address(pods[1], is_v4), 7100);
        let own: IpAddr = own.parse().unwrap();
        assert_eq!(seen(a.node.namespace(), world.sandboxes[pods[1]].namespace(), to), [own, own], "{to}");
    }
    assert!(a.node.agent().status().unwrap().healthy);
    assert!(!a.warns("cluster"), "{:?}", a.node.agent().status());
}

#[test]
fn an_underlay_of_ipv6_carries_pods_of_both_families() {
    let mut world = World::new(&["a", "b"], VXLAN);
    for member in &world.members {
        let [cidrs, addresses] =
            [&member.pod_cidrs, &member.addresses].map(|both| both.each_ref().map(String::as_str));
        world.server.nodes().put(member.name, &cidrs, &addresses[1..]);
    }
    know_each_other(&world);
    let pods = [world.pod(0, "one"), world.pod(1, "two")];
    talk(&world, pods[0], pods[1]);
    assert_eq!(world.members.iter().map(mtu).collect::<Vec<_>>(), [Some(1430); 2]);
}

#[test]
fn of_three_nodes_the_one_behind_a_router_is_reached_by_the_tunnel() {
    let mut world = World::with_far(&["a", "b"], &["c"], "");
    // The way there is smaller: what comes out of the tunnel in pieces is put together.
    world.switch.command("ip", &["link", "set", "to-c", "mtu", "1400"]).unwrap();
    world.members[2].ip(&["link", "set", "up0", "mtu", "1400"]);
    world.join(0);
    world.join(1);
    let [a, b, c] = [0, 1, 2].map(|index| &world.members[index]);
    a.until("b is on the link", || a.routes() == Member::routes_to(b));
    a.network();
    assert_eq!(mtu(a), None, "nothing is encapsulated yet");
    assert!(!a.ip(&["link"]).contains(DEVICE));
    world.join(2);
    let mixed = |one: &Member, plain: &Member, far: &Member| {
        let mut wanted = [Member::routes_to(plain), Member::tunnels_to(far)].concat();
        let mut there = one.routes();
        wanted.sort();
        there.sort();
        there == wanted
    };
    a.until("c is beyond", || mixed(a, b, c) && mtu(a) == Some(1450));
    b.until("c is beyond", || mixed(b, a, c) && mtu(b) == Some(1450));
    let both = [Member::tunnels_to(a), Member::tunnels_to(b)].concat();
    c.until("both are beyond", || {
        let there = c.routes();
        there.len() == both.len() && both.iter().all(|one| there.contains(one)) && mtu(c) == Some(1350)
    });
    let pods = [0, 1, 2].map(|member| world.pod(member, ["one", "two", "three"][member]));
    talk(&world, pods[0], pods[1]);
    for (client, server) in [(0, 2), (2, 1)] {
        talk_within(&world, pods[client], pods[server], 1);
    }
    world.server.nodes().remove("c");
    let [a, b] = [0, 1].map(|index| &world.members[index]);
    a.until("nothing is beyond", || a.routes() == Member::routes_to(b) && mtu(a).is_none());
    assert!(!a.ip(&["link"]).contains(DEVICE));
}
