//! What keeps the tunnel away: it is said, and nothing of somebody else's is touched.

use crate::tunnel::{DEVICE, VXLAN, mtu, talk_within};
use crate::world::{Member, World};

#[test]
fn somebody_elses_device_of_the_name_stays_and_is_told() {
    let world = World::new(&["a", "b"], VXLAN);
    let [a, b] = [0, 1].map(|index| &world.members[index]);
    a.ip(&[
        "link",
        "add",
        DEVICE,
        "type",
        "vxlan",
        "id",
        "83",
        "dstport",
        "8472",
        "local",
        "10.99.0.1",
        "nolearning",
    ]);
    let before = a.ip(&["-o", "-d", "link", "show", DEVICE]);
    (0..2).for_each(|index| world.join(index));
    a.until("it says so", || a.warns("the interface shunt-vxlan is somebody else's"));
    assert_eq!(a.ip(&["-o", "-d", "link", "show", DEVICE]), before);
    assert_eq!(a.routes(), Vec::<String>::new());
    // Another one with the id and the port: the kernel says why.
    a.ip(&["link", "set", DEVICE, "name", "theirs"]);
    a.until("it says so", || a.warns("VXLAN device") && a.warns("already exists"));
    a.ip(&["link", "del", "theirs"]);
    a.until("nothing is in the way", || a.routes() == Member::tunnels_to(b) && !a.warns("VXLAN"));
}

#[test]
fn an_underlay_that_is_too_small_for_ipv6_carries_ipv4() {
    let mut world = World::new(&["a", "b"], VXLAN);
    for member in &world.members {
        member.ip(&["link", "set", "up0", "mtu", "1300"]);
    }
    (0..2).for_each(|index| world.join(index));
    let [a, b] = [0, 1].map(|index| &world.members[index]);
    for (one, other) in [(a, b), (b, a)] {
        one.until("IPv4 is led there", || one.routes() == Member::tunnels_to(other)[..1]);
        one.until("it says so", || one.warns("leaves 1250 in VXLAN") && one.warns("1330"));
    }
    // Pods of IPv6 start nevertheless, and the kernel tells those of IPv4 of the smaller way.
    assert_eq!(mtu(a), Some(1280));
    let pods = [world.pod(0, "one"), world.pod(1, "two")];
    let to = std::net::SocketAddr::new(world.address(pods[1], true), 7000);
    let own = world.address(pods[0], true);
    let inside = |pod: usize| world.sandboxes[pod].namespace();
    assert_eq!(crate::world::seen(inside(pods[0]), inside(pods[1]), to), [own, own]);
    let echo = world.sandboxes[pods[1]].echo(to.ip(), 7001).unwrap();
    let mut long =
        shunt_lab::Conversation::open(inside(pods[0]), shunt_lab::Protocol::Tcp, echo.address()).unwrap();
    long.chat(20, 30_000).unwrap();
    for member in &world.members {
        member.ip(&["link", "set", "up0", "mtu", "1500"]);
    }
    let [a, b] = [0, 1].map(|index| &world.members[index]);
    for (one, other) in [(a, b), (b, a)] {
        one.until("both are led there", || {
            one.routes() == Member::tunnels_to(other) && mtu(one) == Some(1450)
        });
    }
    talk_within(&world, pods[0], pods[1], 1);
}

#[test]
fn nodes_of_two_families_and_an_own_address_that_is_nowhere_are_told() {
    let world = World::new(&["a"], VXLAN);
    let a = &world.members[0];
    world.server.nodes().put("a", &["10.244.1.0/24"], &["10.99.0.55"]);
    a.until("it says so", || a.warns("no interface has this node's InternalIP 10.99.0.55"));
    assert!(a.written().is_none(), "the pods' MTU is not known");
    world.join(0);
    world.server.nodes().put("six", &["10.244.6.0/24"], &["fd99::6", "10.99.0.6"]);
    a.until("it says so", || a.warns("first InternalIP of the node six"));
    assert_eq!((a.routes(), mtu(a)), (Vec::new(), Some(1450)));
    // A node with this one's own address, and one that nobody leads to.
    world.server.nodes().put("own", &["10.244.7.0/24"], &["10.99.0.1"]);
    world.server.nodes().put("lost", &["10.244.8.0/24"], &["192.0.2.7"]);
    a.until("they are told", || {
        a.warns("10.99.0.1 is this node's own") && a.warns("192.0.2.7 cannot be reached")
    });
    assert_eq!(a.routes(), Vec::<String>::new());
}
