//! Addresses that the node makes itself as routers advertise prefixes (RFC 4862), temporary ones among them (RFC 8981), while masqueraded connections
//! live: those go on from the address that they began with.

use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

use shunt_lab::{Conversation, Echo, Namespace, Protocol, patience};

use crate::authority::{link_local, message};
use crate::masquerade::{NODE, OUTSIDE, World};
use crate::source_addresses::{eventually, seen};
use crate::wire::Wire;

/// The prefix that a router advertises, and somebody's address there.
const PREFIX: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 5, 0, 0, 0, 0, 0);
const NEIGHBOR: &str = "2001:db8:5::2/64";
/// Somebody to whom an address with this prefix is nearer than the node's first one, and the way there.
const FAR: &str = "2001:db8:9::2";
const WAY: [&str; 5] = ["route", "add", "2001:db8:9::/64", "via", OUTSIDE[1]];
/// A second for the check that nobody has the address, and what a busy machine needs.
const SOON: Duration = Duration::from_secs(20);

/// Whoever hears it is to make itself addresses with the prefix (RFC 4861, 4.2 and 4.6.2): for an hour, preferred for half of it. The router is
/// nobody's default router.
fn advertise(router: &Wire) {
    let [valid, preferred] = [3600_u32, 1800].map(u32::to_be_bytes);
    let prefix = [&[3, 4, 64, 0xc0][..], &valid, &preferred, &[0; 4], &PREFIX.octets()].concat();
    let fixed = [&[64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &prefix].concat();
    router.send(&message(router, link_local(router.mac()), 134, &fixed, ""));
}

/// The addresses of the way out that are temporary and checked, as `ip` shows them.
fn temporary(node: &Namespace) -> Vec<String> {
    let shown = node.command("ip", &["-6", "-o", "address", "show", "dev", "up0", "temporary"]).unwrap();
    let checked = shown.lines().filter(|line| !line.contains("tentative"));
    checked.filter(|line| line.contains("2001:db8:5:")).map(str::to_owned).collect()
}

fn has_prefix(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(v6) if v6.segments()[..4] == PREFIX.segments()[..4])
}

#[test]
fn a_connection_goes_on_while_a_router_gives_the_way_out_a_second_prefix_and_a_temporary_address() {
    let mut world = World::new();
    world.add("one");
    world.node.settle().unwrap();
    let (node, inside) = (world.node.namespace(), world.sandboxes[0].namespace());
    for address in [NEIGHBOR, "2001:db8:9::2/128"] {
        world.outside.command("ip", &["address", "add", address, "dev", "eth0", "nodad"]).unwrap();
    }
    node.command("ip", &WAY).unwrap();
    for (setting, value) in [("accept_ra", "2"), ("autoconf", "1"), ("use_tempaddr", "2")] {
        node.sysctl(&format!("net/ipv6/conf/up0/{setting}"), value).unwrap();
    }
    let own: IpAddr = NODE[1].parse().unwrap();
    eventually("the programs masquerade", || {
        [OUTSIDE[1], FAR].iter().all(|server| seen(&world, server) == (own, false))
    });
    let echoes = [OUTSIDE[1], FAR].map(|at| Echo::listen(&world.outside, at.parse().unwrap(), 7000).unwrap());
    let open = |echo: &Echo, protocol| Conversation::open(inside, protocol, echo.address()).unwrap();
    let mut talks: Vec<_> = echoes
        .iter()
        .flat_map(|echo| [Protocol::Tcp, Protocol::Udp].map(|protocol| open(echo, protocol)))
        .collect();
    let mut chat = |what: &str| {
        for talk in &mut talks {
            talk.chat(3, 1000).unwrap_or_else(|error| panic!("{what}: {error:#}"));
        }
    };
    chat("before");

    let router = Wire::tap(&world.outside, "eth0");
    let begun = Instant::now();
    while temporary(node).is_empty() {
        let addresses = node.command("ip", &["-6", "address", "show", "dev", "up0"]).unwrap();
        assert!(begun.elapsed() < patience(SOON), "there is no temporary address:\n{addresses}");
        advertise(&router);
        chat("while the addresses come");
        std::thread::sleep(Duration::from_millis(200));
    }
    chat("with the addresses");
    eventually("what begins has one of the new addresses", || has_prefix(seen(&world, FAR).0));
    chat("after others have begun from it");
    let flows = world.node.agent().ask("flows").unwrap();
    let known = flows.as_array().unwrap().iter().filter(|flow| flow["dport"] == 7000);
    let sources: Vec<_> = known.map(|flow| flow["translated"]["src"].as_str().unwrap()).collect();
    assert_eq!(sources, [NODE[1]; 4], "{flows}");
}
