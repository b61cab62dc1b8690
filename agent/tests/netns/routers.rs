//! A node that has its IPv6 addresses and routes from routers goes on hearing them when it becomes a gateway itself.

use std::time::{Duration, Instant};

use shunt_lab::{Namespace, patience};

use crate::authority::{link_local, message};
use crate::stage::Stage;
use crate::wire::Wire;

/// How soon the kernel has to act on an advertisement.
const SOON: Duration = Duration::from_secs(5);

/// What a router says of itself: it is one for half an hour.
fn advertise(router: &Wire) {
    let advertisement =
        message(router, link_local(router.mac()), 134, &[64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0], "");
    router.send(&advertisement);
}

fn default_routes(node: &Namespace) -> String {
    node.command("ip", &["-6", "route", "show", "default"]).unwrap()
}

fn accepts_routers(node: &Namespace, ifname: &str) -> String {
    let setting = format!("net.ipv6.conf.{ifname}.accept_ra");
    node.command("sysctl", &["-n", &setting]).unwrap().trim().to_owned()
}

/// The route by which a router was heard is there within a moment.
fn wait_for_route(node: &Namespace, router: &Wire, metric: &str) {
    let begun = Instant::now();
    while !default_routes(node).contains(metric) {
        assert!(begun.elapsed() < patience(SOON), "the router is not heard: {:?}", default_routes(node));
        advertise(router);
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_node_that_becomes_a_gateway_keeps_its_own_router_and_hears_it_again() {
    let mut stage = Stage::empty();
    let outside = stage.lab.namespace("outside").unwrap();
    for (here, there) in [("up0", "eth0"), ("quiet0", "eth1")] {
        stage.node.namespace().pair(here, &outside, there).unwrap();
    }
    let router = Wire::tap(&outside, "eth0");
    let node = stage.node.namespace();
    assert_eq!(accepts_routers(node, "up0"), "1");
    wait_for_route(node, &router, "dev up0");

    stage.add("one");
    let node = stage.node.namespace();
    assert_eq!(node.command("sysctl", &["-n", "net.ipv6.conf.all.forwarding"]).unwrap().trim(), "1");
    assert!(default_routes(node).contains("dev up0"), "{:?}", default_routes(node));
    assert_eq!(accepts_routers(node, "up0"), "2");
    // Where no router was heard, and on a bridge of containers, nobody can become one.
    assert_eq!(
        (accepts_routers(node, "quiet0").as_str(), accepts_routers(node, "cni0").as_str()),
        ("1", "0")
    );

    node.command("ip", &["-6", "route", "delete", "default", "dev", "up0"]).unwrap();
    wait_for_route(node, &router, "dev up0");
}
