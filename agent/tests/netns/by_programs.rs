//! The translating programs are attached while they translate something: host ports, connections that they begin, have begun or may carry. Where all
//! masquerading is the kernel's, no packet passes them.

use std::net::{IpAddr, SocketAddr};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::json;
use shunt_lab::{Conversation, Echo, Protocol, Sandbox};
use shunt_netlink::conntrack;

use crate::masquerade::{NODE, OUTSIDE, World};

/// Longer than two sweeps of connections are apart.
const SWEEPS: Duration = Duration::from_secs(12);

const PATIENCE: Duration = Duration::from_secs(20);

/// Rules that forwarded packets meet, and that judge each of them: nothing is carried behind such.
fn filter(world: &World) {
    let rules = "add table ip admin; add chain ip admin forward { type filter hook forward priority 0; }; \
                 add rule ip admin forward limit rate over 1000000/second drop";
    world.node.namespace().command("nft", &[rules]).unwrap();
}

/// Where a program is attached.
fn places(world: &World, program: &str) -> Vec<String> {
    let programs = world.node.agent().status().unwrap().programs;
    programs.into_iter().filter(|it| it.name == program).map(|it| it.ifname).collect()
}

/// How many of the translating programs are attached behind ports, and on the uplink.
fn attached(world: &World) -> (usize, usize) {
    let on_uplink = ["from_wire", "to_wire"].map(|program| places(world, program));
    let on_uplink = on_uplink.iter().flatten().filter(|ifname| *ifname == "up0").count();
    (places(world, "from_mapped").len(), on_uplink)
}

/// Waits until so many are, while `meanwhile` goes on.
fn until_attached(world: &World, expected: (usize, usize), mut meanwhile: impl FnMut()) {
    let begun = Instant::now();
    while attached(world) != expected {
        let log = || world.node.agent().log_tail();
        assert!(begun.elapsed() < PATIENCE, "{:?}, not {expected:?}\n{}", attached(world), log());
        meanwhile();
        sleep(Duration::from_millis(20));
    }
    meanwhile();
}

fn is_tracked(world: &World, to: SocketAddr) -> bool {
    let tracked = world.node.namespace().enter(|| conntrack::tracked_connections().unwrap()).unwrap();
    tracked.iter().any(|connection| connection.original.destination == to)
}

fn outside(world: &World, port: u16) -> Echo {
    Echo::listen(&world.outside, OUTSIDE[0].parse().unwrap(), port).unwrap()
}

#[test]
fn where_the_kernel_masquerades_only_host_ports_have_programs_in_the_way() {
    let mut world = World::new();
    filter(&world);
    world.add("one");
    world.node.settle().unwrap();
    assert_eq!(attached(&world), (0, 0));
    let echo = outside(&world, 7000);
    let inside = world.sandboxes[0].namespace();
    let mut datagrams = Conversation::open(inside, Protocol::Udp, echo.address()).unwrap();
    datagrams.chat(5, 1400).unwrap();
    assert!(is_tracked(&world, echo.address()));
    let sent = world.node.agent().port("one").unwrap().from;
    assert!(sent.kernel > 0, "what no program behind translates is counted: {sent:?}");

    let mapping = json!({ "portMappings": [{ "hostPort": 8080, "containerPort": 7000, "protocol": "tcp" }] });
    let network = world.network.clone().with("runtimeConfig", mapping);
    let mapped = Sandbox::start(&world.lab, &world.node, &network, "mapped").unwrap();
    assert_eq!(attached(&world), (1, 2));
    let own = mapped.addresses().into_iter().find(IpAddr::is_ipv4).unwrap();
    let server = mapped.echo(own, 7000).unwrap();
    let by = SocketAddr::new(NODE[0].parse().unwrap(), 8080);
    Conversation::open(&world.outside, Protocol::Tcp, by).unwrap().chat(5, 1400).unwrap();
    datagrams.chat(5, 1400).unwrap();
    drop(server);
    mapped.delete(&world.node, &network).unwrap();
    until_attached(&world, (0, 0), || datagrams.chat(1, 1400).unwrap());
}

#[test]
fn a_connection_that_the_programs_have_begun_keeps_them_until_it_is_over() {
    let mut world = World::new();
    ["one", "two"].into_iter().for_each(|id| world.add(id));
    world.node.settle().unwrap();
    assert_eq!(attached(&world), (2, 2));
    let [first, second, third] = [7001, 7002, 7003].map(|port| outside(&world, port));
    let mut known =
        Conversation::open(world.sandboxes[0].namespace(), Protocol::Tcp, first.address()).unwrap();
    known.chat(5, 1400).unwrap();
    filter(&world);
    // The agent looks for rules at once.
    world.add("three");
    let since = Instant::now();
    while since.elapsed() < SWEEPS {
        known.chat(5, 1400).unwrap();
        sleep(Duration::from_millis(50));
    }
    assert_eq!(attached(&world), (3, 2));
    // The next agent does not know when the rules came.
    world.node.agent_mut().kill().unwrap();
    known.chat(5, 1400).unwrap();
    world.node.restart_agent().unwrap();
    known.chat(5, 1400).unwrap();
    assert_eq!(attached(&world), (3, 2));
    assert!(!is_tracked(&world, first.address()));

    let mut kernels =
        Conversation::open(world.sandboxes[1].namespace(), Protocol::Udp, second.address()).unwrap();
    kernels.chat(5, 1400).unwrap();
    assert!(is_tracked(&world, second.address()));
    drop(known);
    world.sandboxes[0].delete(&world.node, &world.network).unwrap();
    until_attached(&world, (0, 0), || kernels.chat(1, 1400).unwrap());

    // What the kernel has begun stays with it when the programs begin again.
    world.node.namespace().command("nft", &["delete table ip admin"]).unwrap();
    until_attached(&world, (2, 2), || kernels.chat(1, 1400).unwrap());
    kernels.chat(20, 1400).unwrap();
    let inside = world.sandboxes[1].namespace();
    Conversation::open(inside, Protocol::Tcp, third.address()).unwrap().chat(5, 1400).unwrap();
    assert!(!is_tracked(&world, third.address()));
}
