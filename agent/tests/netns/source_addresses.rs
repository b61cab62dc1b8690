//! ipMasq by a way out with several addresses: which of them a connection gets, and how long it has it.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use shunt_lab::{Conversation, Echo, Protocol, uninterrupted};
use shunt_netlink::conntrack;

use crate::masquerade::{NODE, OUTSIDE, World, any};

const PATIENCE: Duration = Duration::from_secs(5);

/// Addresses that the way out gets in addition: of another subnet, of none (a VIP), and one more of the first.
const FURTHER: [&str; 6] =
    ["10.98.0.1/24", "10.99.0.65/32", "192.0.2.1/24", "fd98::1/64", "fd99::1:1/64", "2001:db8::1/64"];

/// Somebody on each link, and behind it.
const SERVERS: [&str; 8] = [
    "10.99.0.2",
    "10.98.0.2",
    "203.0.113.2",
    "198.51.100.2",
    "fd99::2",
    "fd98::2",
    "2001:db8:9::2",
    "fd00:9::2",
];

/// The ways to those behind, of which one names a source, which masquerading does not ask for.
const WAYS: [&str; 4] = [
    "203.0.113.0/24 via 10.98.0.2",
    "198.51.100.0/24 via 10.99.0.2 src 192.0.2.1",
    "2001:db8:9::/64 via fd98::2",
    "fd00:9::/64 via fd99::2 src 2001:db8::1",
];

fn lengthen(world: &World) {
    let node = world.node.namespace();
    for address in FURTHER {
        node.command("ip", &["address", "add", address, "dev", "up0", "nodad"]).unwrap();
    }
    for server in SERVERS {
        let length = if server.contains(':') { "64" } else { "24" };
        let address = format!("{server}/{length}");
        // The first of each family is there.
        if !OUTSIDE.contains(&server) {
            world.outside.command("ip", &["address", "add", &address, "dev", "eth0", "nodad"]).unwrap();
        }
    }
    for (back, via) in [("192.0.2.0/24", NODE[0]), ("2001:db8::/64", NODE[1])] {
        world.outside.command("ip", &["route", "add", back, "via", via]).unwrap();
    }
    for way in WAYS {
        let mut words = vec!["route", "add"];
        words.extend(way.split(' '));
        node.command("ip", &words).unwrap();
    }
}

/// Whom a server sees of the container, and whether the connection is conntrack's.
pub(crate) fn seen(world: &World, server: &str) -> (IpAddr, bool) {
    let address: IpAddr = server.parse().unwrap();
    let socket = world.outside.enter(|| UdpSocket::bind((address, 0)).unwrap()).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let to = socket.local_addr().unwrap();
    let client =
        world.sandboxes[0].namespace().enter(|| UdpSocket::bind((any(address), 0)).unwrap()).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.send_to(b"who am I?", to).unwrap();
    let from = uninterrupted(|| socket.recv_from(&mut [0; 16])).unwrap().1;
    socket.send_to(b"that one", from).unwrap();
    assert_eq!(uninterrupted(|| client.recv_from(&mut [0; 16])).unwrap().1, to);
    let tracked = world.node.namespace().enter(|| conntrack::tracked_connections().unwrap()).unwrap();
    (from.ip(), tracked.iter().any(|connection| connection.original.destination == to))
}

pub(crate) fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < 3 * PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_connection_gets_the_address_that_the_kernel_would_choose() {
    let mut world = World::new();
    lengthen(&world);
    world.add("one");
    world.node.settle().unwrap();
    eventually("the programs masquerade", || SERVERS.iter().all(|server| !seen(&world, server).1));
    let by_programs = SERVERS.map(|server| seen(&world, server).0);
    // Now somebody has rules.
    let node = world.node.namespace();
    node.command("nft", &["add table inet admin"]).unwrap();
    node.command("nft", &["add chain inet admin forward { type filter hook forward priority 0; }"]).unwrap();
    node.command("nft", &["add rule inet admin forward tcp dport 7009 drop"]).unwrap();
    eventually("the kernel masquerades", || SERVERS.iter().all(|server| seen(&world, server).1));
    let by_kernel = SERVERS.map(|server| seen(&world, server).0);
    assert_eq!(by_programs, by_kernel, "{SERVERS:?}");
    let mut all = by_kernel.to_vec();
    all.sort();
    all.dedup();
    assert!(all.len() > 4, "it is chosen: {all:?}");
}

#[test]
fn a_connection_goes_on_with_its_address_until_that_goes() {
    let mut world = World::new();
    world.add("one");
    world.node.settle().unwrap();
    let inside = world.sandboxes[0].namespace();
    let echoes = OUTSIDE.map(|outside| Echo::listen(&world.outside, outside.parse().unwrap(), 7000).unwrap());
    let open = |echo: &Echo, protocol| Conversation::open(inside, protocol, echo.address()).unwrap();
    let mut known: Vec<Conversation> = echoes
        .iter()
        .flat_map(|echo| [Protocol::Tcp, Protocol::Udp].map(|protocol| open(echo, protocol)))
        .collect();
    known.iter_mut().for_each(|conversation| conversation.chat(5, 1400).unwrap());
    let clients = OUTSIDE.map(|outside| datagrams(&world, outside));
    lengthen(&world);
    eventually("the new addresses are there", || seen(&world, SERVERS[1]).0.to_string() == "10.98.0.1");
    known.iter_mut().for_each(|conversation| conversation.chat(5, 1400).unwrap());

    let node = world.node.namespace();
    for (address, length) in NODE.into_iter().zip(["24", "64"]) {
        let address = format!("{address}/{length}");
        node.command("ip", &["address", "delete", &address, "dev", "up0"]).unwrap();
        // The way that this took with it.
        let subnet = if length == "24" { "10.99.0.0/24" } else { "fd99::/64" };
        node.command("ip", &["route", "replace", subnet, "dev", "up0"]).unwrap();
    }
    for (client, server, asked) in clients {
        eventually("what has no address any more ends", || {
            client.send(b"still me").unwrap();
            server.recv_from(&mut [0; 16]).is_err()
        });
        let (now, _) = seen(&world, &asked.ip().to_string());
        assert!(!NODE.contains(&now.to_string().as_str()), "{now}");
    }
}

/// As kube-proxy's IPVS gives an interface an address for each Service.
fn give_thousands(world: &World, ifname: &str, first: u32, count: u32) {
    let lines = (first..first + count)
        .map(|number| format!("address add 10.200.{}.{}/32 dev {ifname}\n", number / 250, number % 250 + 1));
    let batch = world.lab.root().join("batch");
    std::fs::write(&batch, lines.collect::<String>()).unwrap();
    world.node.namespace().command("ip", &["-batch", batch.to_str().unwrap()]).unwrap();
}

#[test]
fn thousands_of_addresses_elsewhere_keep_nobody_waiting_and_choices_true() {
    let mut world = World::new();
    world.add("one");
    let node = world.node.namespace();
    node.command("ip", &["link", "add", "services", "type", "veth", "peer", "name", "nowhere"]).unwrap();
    for first in [0, 2_100] {
        give_thousands(&world, "services", first, 2_100);
        let begun = Instant::now();
        world.node.agent().status().unwrap();
        // Other tests run beside this one.
        assert!(begun.elapsed() < 2 * PATIENCE, "it answers after {:?}", begun.elapsed());
    }
    eventually("the status names what does not fit", || {
        let warnings = world.node.agent().status().unwrap().warnings;
        warnings.iter().any(|warning| warning.contains("services") && warning.contains("OUTLETS"))
    });
    let swap = [["delete", "10.99.0.1/24"], ["add", "10.99.0.8/24"]];
    for [verb, address] in swap {
        node.command("ip", &["address", verb, address, "dev", "up0"]).unwrap();
    }
    eventually("the address that is there is chosen", || {
        seen_or_none(&world, OUTSIDE[0]).is_some_and(|seen| seen.to_string() == "10.99.0.8")
    });
    // Until the agent has worked through them all, the kernel masquerades by the same choice.
    eventually("by the programs", || !seen(&world, OUTSIDE[0]).1);
}

/// Whom a server sees, if anybody.
fn seen_or_none(world: &World, server: &str) -> Option<IpAddr> {
    let address: IpAddr = server.parse().unwrap();
    let socket = world.outside.enter(|| UdpSocket::bind((address, 0)).unwrap()).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let client =
        world.sandboxes[0].namespace().enter(|| UdpSocket::bind((any(address), 0)).unwrap()).unwrap();
    client.send_to(b"who am I?", socket.local_addr().unwrap()).unwrap();
    uninterrupted(|| socket.recv_from(&mut [0; 16])).ok().map(|(_, from)| from.ip())
}

/// A client inside and its server, which have talked.
fn datagrams(world: &World, outside: &str) -> (UdpSocket, UdpSocket, SocketAddr) {
    let outside: IpAddr = outside.parse().unwrap();
    let server = world.outside.enter(|| UdpSocket::bind((outside, 7001)).unwrap()).unwrap();
    let client =
        world.sandboxes[0].namespace().enter(|| UdpSocket::bind((any(outside), 0)).unwrap()).unwrap();
    client.connect((outside, 7001)).unwrap();
    client.send(b"it is me").unwrap();
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    let from = uninterrupted(|| server.recv_from(&mut [0; 16])).unwrap().1;
    assert!(NODE.contains(&from.ip().to_string().as_str()), "{from}");
    server.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    (client, server, SocketAddr::new(outside, 7001))
}
