//! Packets of more than 64 KiB (`bigTcp`): both ends of a veth take what all ways out take, and streams of such packets arrive as they
//! were sent, between containers, translated, and shaped.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use shunt_agent_api::Packets;
use shunt_lab::{Namespace, Node, Sandbox, patience, uninterrupted};
use shunt_netlink::Connection;
use shunt_netlink::link::{LargestPackets, Link, Selector, link};

use crate::bandwidth::{ABSURD, RATE, assert_limited};
use crate::masquerade::{NODE, OUTSIDE, World};
use crate::stage::Stage;

const USUAL: u32 = 65_536;
const LARGEST: u32 = 524_280;
const SOME: u32 = 196_608;

/// On a node all of whose ways out take the largest.
const AUTO: Packets = Packets { ipv4: LARGEST, ipv6: USUAL };

const PATIENCE: Duration = Duration::from_secs(20);

/// Bytes that are written at once, and how often.
const PIECE: usize = 1 << 20;
const PIECES: usize = 128;

fn sizes(namespace: &Namespace, ifname: &str) -> LargestPackets {
    let asked = || {
        let found: Option<Link> = Connection::open().unwrap().get(link(Selector::Name(ifname))).unwrap();
        found.unwrap_or_else(|| panic!("there is no {ifname}")).largest_packets
    };
    namespace.enter(asked).unwrap()
}

/// What both ends take of each family.
fn assert_both_ends_take(node: &Node, sandbox: &Sandbox, taken: Packets) {
    let host = node.agent().port(sandbox.id()).unwrap().host_ifname;
    for (namespace, ifname) in [(node.namespace(), host.as_str()), (sandbox.namespace(), "eth0")] {
        let LargestPackets { ipv6, ipv4, .. } = sizes(namespace, ifname);
        assert_eq!(Packets { ipv4, ipv6 }, taken, "{ifname} of {}", sandbox.id());
    }
}

fn piece(number: usize) -> Vec<u8> {
    (0..PIECE).map(|at| (number + at / 7) as u8).collect()
}

fn send(mut by: TcpStream) {
    by.set_write_timeout(Some(patience(PATIENCE))).unwrap();
    (0..PIECES).for_each(|number| by.write_all(&piece(number)).unwrap());
}

fn receive(mut by: TcpStream) {
    by.set_read_timeout(Some(patience(PATIENCE))).unwrap();
    let mut heard = vec![0; PIECE];
    for number in 0..PIECES {
        uninterrupted(|| by.read_exact(&mut heard)).unwrap();
        assert!(heard == piece(number), "piece {number} is what was sent");
    }
}

/// A connection to a server at `own`, which its client finds at `there`.
fn connect(
    client: &Namespace,
    server: &Namespace,
    (own, there): (SocketAddr, SocketAddr),
) -> (TcpStream, TcpStream) {
    let listener = server.enter(|| TcpListener::bind(own).unwrap()).unwrap();
    let asked = || TcpStream::connect_timeout(&there, patience(PATIENCE)).unwrap();
    let client = client.enter(asked).unwrap();
    (client, listener.accept().unwrap().0)
}

/// Bytes of an average packet while a container sends a stream, which arrives as it was sent.
fn average(node: &Node, container: &str, (from, to): (TcpStream, TcpStream)) -> u64 {
    let before = node.agent().port(container).unwrap().from;
    thread::scope(|scope| {
        scope.spawn(|| send(from));
        receive(to);
    });
    let after = node.agent().port(container).unwrap().from;
    (after.bytes - before.bytes) / (after.packets - before.packets).max(1)
}

/// Streams from the first container to each address of the second have packets of more than 64 KiB if their ends take such.
fn assert_streams_have(stage: &Stage, packets: Packets) {
    let [one, two, ..] = &stage.sandboxes[..] else { panic!("two containers are needed") };
    for address in two.addresses() {
        let there = SocketAddr::new(address, 7000);
        let ends = connect(one.namespace(), two.namespace(), (there, there));
        assert_is_of(packets, address, average(&stage.node, one.id(), ends));
    }
}

fn assert_is_of(packets: Packets, address: IpAddr, average: u64) {
    let size = if address.is_ipv4() { packets.ipv4 } else { packets.ipv6 };
    assert_eq!(average > USUAL.into(), size > USUAL, "{average} bytes a packet to {address}");
}

fn two_containers(mut stage: Stage, value: Option<Value>) -> Stage {
    if let Some(value) = value {
        stage.network = stage.network.clone().with("bigTcp", value);
    }
    stage.add("one");
    stage.add("two");
    stage.node.settle().unwrap();
    stage
}

#[test]
fn streams_between_containers_have_packets_of_more_than_64_kib() {
    let stage = two_containers(Stage::empty(), Some(json!("auto")));
    for sandbox in &stage.sandboxes {
        assert_both_ends_take(&stage.node, sandbox, AUTO);
    }
    assert_streams_have(&stage, AUTO);
    let node = stage.node.namespace();
    assert_eq!(sizes(node, "cni0").ipv4, LARGEST);
    for sandbox in &stage.sandboxes {
        sandbox.delete(&stage.node, &stage.network).unwrap();
    }
    let bridge = sizes(node, "cni0");
    assert_eq!((bridge.ipv4, bridge.ipv6), (USUAL, USUAL), "as it was");
    assert_eq!(stage.left(), Vec::<String>::new());
}

#[test]
fn a_network_says_the_size_and_without_one_the_agents_file() {
    for (file, value, packets) in [
        ("", None, Packets::USUAL),
        ("big_tcp = 'auto'", None, AUTO),
        ("big_tcp = 196608", None, Packets::of_both(SOME)),
        ("big_tcp = 'off'", Some(json!("auto")), AUTO),
        ("", Some(json!("off")), Packets::USUAL),
        ("", Some(json!(LARGEST)), Packets::of_both(LARGEST)),
    ] {
        let stage = two_containers(Stage::empty_by(file), value);
        for sandbox in &stage.sandboxes {
            assert_both_ends_take(&stage.node, sandbox, packets);
        }
        assert_streams_have(&stage, packets);
    }
}

/// A node whose default route leads by `up1`, which `ip` has made by these words.
fn with_way_out(made: &[&str]) -> Stage {
    let stage = Stage::empty();
    let rest = ["address add 192.0.2.1/24 dev up1", "link set up1 up", "route add default via 192.0.2.9"];
    for words in made.iter().chain(&rest) {
        stage.node.namespace().command("ip", &words.split(' ').collect::<Vec<_>>()).unwrap();
    }
    two_containers(stage, Some(json!("auto")))
}

#[test]
fn packets_are_no_larger_than_every_way_out_takes_them() {
    // A tap takes no more than 64 KiB.
    let stage = with_way_out(&["tuntap add up1 mode tap"]);
    assert_both_ends_take(&stage.node, &stage.sandboxes[0], Packets::USUAL);
}

/// A cure of a driver's fault, say.
#[test]
fn who_has_decided_on_less_keeps_it() {
    let pair = "link add up1 type veth peer name up2";
    let stage = with_way_out(&[pair, "link set up1 gso_max_size 32768", "link set up2 up"]);
    assert_both_ends_take(&stage.node, &stage.sandboxes[0], Packets::USUAL);
    assert_eq!(sizes(stage.node.namespace(), "up1").ipv6, 32_768);
}

#[test]
fn masqueraded_streams_leave_in_large_packets_by_programs_and_by_the_kernel() {
    for (by_kernel, value, packets) in [
        (false, json!("auto"), AUTO),
        (true, json!("auto"), AUTO),
        (false, json!(LARGEST), Packets::of_both(LARGEST)),
        (true, json!(LARGEST), Packets::of_both(LARGEST)),
    ] {
        let mut world = World::new();
        world.network = world.network.clone().with("bigTcp", value);
        if by_kernel {
            for rules in [
                "add table inet other",
                "add chain inet other forward { type filter hook forward priority 0 ; }",
                "add rule inet other forward udp dport 9 drop",
            ] {
                world.node.namespace().command("nft", &[rules]).unwrap();
            }
        }
        world.add("one");
        world.node.settle().unwrap();
        assert_both_ends_take(&world.node, &world.sandboxes[0], packets);
        let LargestPackets { ipv6, ipv4, .. } = sizes(world.node.namespace(), "up0");
        assert_eq!(Packets { ipv4, ipv6 }, packets, "or the kernel cuts what leaves there");
        for address in OUTSIDE {
            let there = SocketAddr::new(address.parse().unwrap(), 7000);
            let ends = connect(world.sandboxes[0].namespace(), &world.outside, (there, there));
            assert_is_of(packets, there.ip(), average(&world.node, "one", ends));
        }
    }
}

#[test]
fn what_a_host_ports_container_answers_is_in_large_packets() {
    let mut world = World::new();
    let mapping = json!({ "portMappings": [{ "hostPort": 8080, "containerPort": 7000, "protocol": "tcp" }] });
    world.network = world.network.clone().with("runtimeConfig", mapping).with("bigTcp", json!("auto"));
    world.add("one");
    world.node.settle().unwrap();
    let one = &world.sandboxes[0];
    let own = one.addresses().into_iter().find(IpAddr::is_ipv4).unwrap();
    let places = (SocketAddr::new(own, 7000), SocketAddr::new(NODE[0].parse().unwrap(), 8080));
    let (client, server) = connect(&world.outside, one.namespace(), places);
    let average = average(&world.node, "one", (server, client));
    assert!(average > USUAL.into(), "{average} bytes a packet");
}

#[test]
fn a_limited_container_has_its_rate_of_a_sender_of_large_packets() {
    let mut stage = two_containers(Stage::empty(), Some(json!("auto")));
    let plain = stage.network.clone();
    for direction in ["ingress", "egress"] {
        let limits =
            json!({ "bandwidth": { format!("{direction}Rate"): RATE, format!("{direction}Burst"): ABSURD } });
        stage.network = plain.clone().with("runtimeConfig", limits);
        stage.add(direction);
    }
    stage.node.settle().unwrap();
    let [one, _, received, sends] = &stage.sandboxes[..] else { panic!("four were added") };
    for limited in [received, sends] {
        assert_both_ends_take(&stage.node, limited, Packets::USUAL);
    }
    assert_both_ends_take(&stage.node, one, AUTO);
    assert_limited(one, received);
    assert_limited(sends, one);
}
