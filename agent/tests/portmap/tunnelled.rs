//! From outside to a container by a port of the node, where packets come in without an Ethernet header.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use serde_json::json;
use shunt_agent_api::PortReport;
use shunt_lab::{Lab, Lacking, Namespace, Protocol, Sandbox, skip, uninterrupted};

use crate::datagram::{UDP, packet, udp};
use crate::errors::{any_like, error_from};
use crate::fragments::put_together;
use crate::stage::{NODE, OUTSIDE, Stage, address, give, mapping};
use crate::too_big;
use crate::tunnel::Tunnel;

/// The node's addresses in the tunnel, and those of the host at its other end.
const HERE: [&str; 2] = ["198.51.100.1", "2001:db8:1::1"];
const THERE: [&str; 2] = ["198.51.100.9", "2001:db8:1::9"];

const PATIENCE: Duration = Duration::from_secs(10);

/// Gives both ends of a link their addresses.
fn address_ends(stage: &Stage, there: &Namespace, ifname: &str) {
    for (namespace, addresses) in [(stage.node.namespace(), HERE), (there, THERE)] {
        for (address, length) in addresses.into_iter().zip(["24", "64"]) {
            give(namespace, ifname, &format!("{address}/{length}"));
        }
    }
    stage.wait_until("packets come in by the tunnel", |_| tunnels(stage).contains(&ifname.to_owned()));
}

/// The interfaces that `from_tunnel` runs on.
fn tunnels(stage: &Stage) -> Vec<String> {
    let programs = stage.node.agent().status().unwrap().programs.into_iter();
    programs.filter(|program| program.name == "from_tunnel").map(|program| program.ifname).collect()
}

/// More than so many packets went by the programs since then, each way, and hardly any by the kernel.
fn assert_by_the_programs(stage: &Stage, before: &PortReport, packets: u64) {
    let counted = stage.node.agent().port("one").unwrap();
    let [to, from] = [counted.to.fast - before.to.fast, counted.from.fast - before.from.fast];
    assert!(to >= packets && from >= packets, "{before:?}, {counted:?}");
    assert!(counted.from.kernel - before.from.kernel < 50, "{before:?}, {counted:?}");
}

#[test]
fn a_host_beyond_a_tunnel_talks_to_a_container_by_the_nodes_address() {
    let mut stage = Stage::new();
    let there = stage.lab.namespace("there").unwrap();
    stage.add("one", &[mapping(8080, 7000, "tcp"), mapping(8080, 7000, "udp")]);
    let _echo = stage.echo(0, 7000);
    // It comes when there are host ports already, goes, and comes again.
    for segments in [false, true] {
        let before = stage.node.agent().port("one").unwrap();
        assert!(tunnels(&stage).is_empty());
        let tunnel = Tunnel::dig(stage.node.namespace(), &there, "tun0", segments);
        address_ends(&stage, &there, "tun0");
        for node in HERE {
            for protocol in [Protocol::Tcp, Protocol::Udp] {
                let mut talk = stage.open(&there, protocol, node, 8080);
                talk.chat(100, 1300).unwrap_or_else(|error| panic!("{node} {protocol:?}: {error:#}"));
            }
            // 2 MiB, in pieces that are cut in front of the tunnel or not at all.
            stage.open(&there, Protocol::Tcp, node, 8080).chat(64, 32 << 10).unwrap();
        }
        assert_by_the_programs(&stage, &before, 400);
        // By the other way in, too, and to an address of that one.
        stage.open(&stage.outside, Protocol::Tcp, NODE[0], 8080).chat(20, 1000).unwrap();
        drop(tunnel);
        stage.wait_until("the tunnel is gone", |_| tunnels(&stage).is_empty());
    }
    assert_eq!(stage.node.agent().status().unwrap().reasons, Vec::<String>::new());
}

#[test]
fn the_container_sees_who_is_beyond_the_tunnel() {
    let mut stage = Stage::new();
    let there = stage.lab.namespace("there").unwrap();
    let _tunnel = Tunnel::dig(stage.node.namespace(), &there, "tun0", false);
    stage.add("one", &[mapping(8080, 7000, "tcp"), mapping(8053, 7001, "udp")]);
    address_ends(&stage, &there, "tun0");
    let inside = stage.sandboxes[0].namespace();
    for ((node, client), own) in HERE.into_iter().zip(THERE).zip(stage.sandboxes[0].addresses()) {
        let listener = inside.enter(|| TcpListener::bind((own, 7000)).unwrap()).unwrap();
        let to = SocketAddr::new(address(node), 8080);
        let stream = there.enter(|| TcpStream::connect_timeout(&to, PATIENCE).unwrap()).unwrap();
        let (_, seen) = listener.accept().unwrap();
        assert_eq!((seen, seen.ip()), (stream.local_addr().unwrap(), address(client)));

        let server = inside.enter(|| UdpSocket::bind((own, 7001)).unwrap()).unwrap();
        let socket = there.enter(|| UdpSocket::bind(any_like(own)).unwrap()).unwrap();
        for socket in [&server, &socket] {
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
        }
        socket.send_to(b"who?", (address(node), 8053)).unwrap();
        let (_, seen) = uninterrupted(|| server.recv_from(&mut [0; 8])).unwrap();
        assert_eq!(seen, SocketAddr::new(address(client), socket.local_addr().unwrap().port()));
        server.send_to(b"me", seen).unwrap();
        let (_, from) = uninterrupted(|| socket.recv_from(&mut [0; 8])).unwrap();
        assert_eq!(from, (address(node), 8053).into());
        // And hears when the client is gone.
        drop(socket);
        assert_eq!(error_from(&server, seen), ErrorKind::ConnectionRefused, "by {node}");
    }
    let counted = stage.node.agent().port("one").unwrap();
    assert!(counted.to.kernel < 50, "the errors came by the programs: {counted:?}");
}

/// Of two tunnels the declared one is a way in, from the moment in which it is there; and a container with a limit, whose packets
/// wait in a queue, gets them through its port.
#[test]
fn a_declared_tunnel_leads_into_a_limited_container() {
    let lab = Lab::new().unwrap();
    let config = lab.root().join("agent.toml");
    std::fs::write(&config, "[uplinks.tun0]\negress = \"1G\"\ningress = \"1G\"\n").unwrap();
    let mut stage = Stage::with(lab, &["--config", config.to_str().unwrap()]);
    let there = stage.lab.namespace("there").unwrap();
    let mappings = json!([mapping(8080, 7000, "tcp"), mapping(8080, 7000, "udp")]);
    let limits = json!({ "ingressRate": 500_000_000, "ingressBurst": 8_000_000 });
    stage.network =
        stage.network.clone().with("runtimeConfig", json!({ "portMappings": mappings, "bandwidth": limits }));
    let sandbox = Sandbox::start(&stage.lab, &stage.node, &stage.network, "one").unwrap();
    stage.sandboxes.push(sandbox);
    let _echo = stage.echo(0, 7000);
    let _other = Tunnel::dig(stage.node.namespace(), &there, "tun1", false);
    give(stage.node.namespace(), "tun1", "203.0.113.1/24");
    let _tunnel = Tunnel::dig(stage.node.namespace(), &there, "tun0", false);
    address_ends(&stage, &there, "tun0");
    let before = stage.node.agent().port("one").unwrap();
    for node in HERE {
        for protocol in [Protocol::Tcp, Protocol::Udp] {
            let mut talk = stage.open(&there, protocol, node, 8080);
            talk.chat(50, 1300).unwrap_or_else(|error| panic!("{node} {protocol:?}: {error:#}"));
        }
    }
    assert_by_the_programs(&stage, &before, 200);
}

#[test]
fn a_tunnel_outlives_the_agent_as_a_way_in_and_is_none_without_host_ports() {
    let mut stage = Stage::new();
    let there = stage.lab.namespace("there").unwrap();
    let _tunnel = Tunnel::dig(stage.node.namespace(), &there, "tun0", false);
    stage.add("one", &[mapping(8080, 7000, "tcp")]);
    address_ends(&stage, &there, "tun0");
    let _echo = stage.echo(0, 7000);
    let mut talk = stage.open(&there, Protocol::Tcp, HERE[0], 8080);
    talk.chat(20, 1000).unwrap();
    stage.node.agent_mut().kill().unwrap();
    talk.chat(20, 1000).unwrap();
    stage.node.restart_agent().unwrap();
    assert_eq!(tunnels(&stage), ["tun0"]);
    talk.chat(20, 1000).unwrap();
    let sandbox = stage.sandboxes.remove(0);
    sandbox.delete(&stage.node, &stage.network).unwrap();
    stage.wait_until("no host port, no program", |_| tunnels(&stage).is_empty());
}

#[test]
fn pieces_and_errors_cross_a_tunnel() {
    let mut stage = Stage::new();
    let there = stage.lab.namespace("there").unwrap();
    let _tunnel = Tunnel::dig(stage.node.namespace(), &there, "tun0", false);
    stage.add("one", &[mapping(8053, 7000, "udp"), mapping(8054, 7001, "udp")]);
    address_ends(&stage, &there, "tun0");
    let _echo = stage.echo(0, 7000);
    let put = put_together(stage.node.namespace());
    let before = stage.node.agent().port("one").unwrap();
    for node in HERE {
        for length in [1473, 3000, 9000] {
            let mut talk = stage.open(&there, Protocol::Udp, node, 8053);
            talk.chat(10, length).unwrap_or_else(|error| panic!("{node} {length}: {error:#}"));
        }
        let closed = SocketAddr::new(address(node), 8054);
        let client = there.enter(|| UdpSocket::bind(any_like(closed.ip())).unwrap()).unwrap();
        assert_eq!(error_from(&client, closed), ErrorKind::ConnectionRefused, "by {node}");
    }
    assert_eq!(put_together(stage.node.namespace()), put, "the node has put nothing together");
    assert_by_the_programs(&stage, &before, 2 * 10 * (2 + 3 + 7));
}

/// Large segments cross the tunnel whole, or cut in front of it; datagrams as they are.
#[test]
fn whoever_sends_too_much_by_a_tunnel_is_told_how_much_fits() {
    for segments in [false, true] {
        let mut stage = too_big::stage();
        let there = stage.lab.namespace("there").unwrap();
        let _tunnel = Tunnel::dig(stage.node.namespace(), &there, "tun0", segments);
        stage.add("one", &[mapping(8053, 7000, "udp"), mapping(8080, 7000, "tcp")]);
        address_ends(&stage, &there, "tun0");
        let _echo = stage.echo(0, 7000);
        for node in HERE {
            let to = SocketAddr::new(address(node), 8053);
            too_big::assert_told(&stage, "beyond the tunnel", &there, to, 1500);
            stage.open(&there, Protocol::Tcp, node, 8080).chat(16, 32 << 10).unwrap();
        }
    }
}

#[test]
fn a_packet_that_comes_by_a_tunnel_is_explained_as_it_is_there() {
    let mut stage = Stage::new();
    let there = stage.lab.namespace("there").unwrap();
    let _tunnel = Tunnel::dig(stage.node.namespace(), &there, "tun0", false);
    stage.add("one", &[mapping(8053, 7000, "udp")]);
    address_ends(&stage, &there, "tun0");
    let host_ifname = stage.node.agent().port("one").unwrap().host_ifname;
    for (node, client) in HERE.map(address).into_iter().zip(THERE.map(address)) {
        let bare = packet(UDP, client, node, 64, udp([50_000, 8053], b"explain this"));
        let sketched = format!("udp {}", SocketAddr::new(node, 8053));
        for question in [hex(&bare), sketched] {
            let question = ["--from", "uplink:tun0", "--packet", &question];
            let explained = stage.node.agent().ask_with("explain", &question).unwrap();
            assert_eq!(explained["verdict"], "deliver", "{explained}");
            assert_eq!(explained["to"][0], host_ifname.as_str(), "{explained}");
        }
        let large = packet(UDP, client, node, 64, udp([50_000, 8053], &[7; 1600]));
        let question = ["--from", "uplink:tun0", "--packet", &hex(&large)];
        let explained = stage.node.agent().ask_with("explain", &question).unwrap();
        assert_eq!(explained["reason"], "too_big", "{explained}");
        let told = explained["packet"].as_str().unwrap();
        let quoted = &hex(&large)[..100];
        assert!(
            told.len() < 400 && told.contains(quoted),
            "what its sender is told, and quoted as sent: {told}"
        );
        assert!(told.starts_with(&hex(&large)[..1]), "without an Ethernet header: {told}");
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn what_containers_begin_by_a_tunnel_the_kernel_masquerades() {
    let mut stage = Stage::new();
    let there = stage.lab.namespace("there").unwrap();
    let _tunnel = Tunnel::dig(stage.node.namespace(), &there, "tun0", false);
    stage.network = stage.network.clone().with("ipMasq", json!(true));
    stage.add("one", &[mapping(8080, 7000, "tcp")]);
    address_ends(&stage, &there, "tun0");
    for (node, outside) in HERE.into_iter().zip(THERE) {
        let server = there.enter(|| UdpSocket::bind((address(outside), 9000)).unwrap()).unwrap();
        server.set_read_timeout(Some(PATIENCE)).unwrap();
        let inside = stage.sandboxes[0].namespace();
        let client = inside.enter(|| UdpSocket::bind(any_like(address(outside))).unwrap()).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.send_to(b"who am I?", (address(outside), 9000)).unwrap();
        let (_, seen) = uninterrupted(|| server.recv_from(&mut [0; 16])).unwrap();
        assert_eq!(seen.ip(), address(node), "the node");
        server.send_to(b"that one", seen).unwrap();
        let (_, from) = uninterrupted(|| client.recv_from(&mut [0; 16])).unwrap();
        assert_eq!(from, server.local_addr().unwrap());
    }
}

/// Kernels that have them make these between two hosts by themselves, each of another hardware type.
#[test]
fn tunnels_of_every_kind_are_ways_in() {
    const KINDS: [(&str, &[&str], usize); 5] = [
        ("ipip", &[], 0),
        ("gre", &[], 0),
        ("sit", &["mode", "any"], 0),
        ("ip6tnl", &["mode", "any"], 1),
        ("ip6gre", &[], 1),
    ];
    let mut stage = too_big::stage();
    stage.add("one", &[mapping(8080, 7000, "tcp"), mapping(8080, 7000, "udp")]);
    let _echo = stage.echo(0, 7000);
    for (kind, more, outer) in KINDS {
        let link = |namespace: &Namespace, local: &str, remote: &str| {
            let words = ["link", "add", "way", "type", kind, "local", local, "remote", remote];
            let made = namespace.command("ip", &[&words[..], more].concat());
            made.and_then(|_| namespace.command("ip", &["link", "set", "way", "up"]))
        };
        if link(&stage.outside, OUTSIDE[outer], NODE[outer]).is_err() {
            skip(Lacking::Kernel(kind));
            continue;
        }
        link(stage.node.namespace(), NODE[outer], OUTSIDE[outer]).unwrap();
        address_ends(&stage, &stage.outside, "way");
        let before = stage.node.agent().port("one").unwrap();
        // What carries one version only says nothing of the other.
        let versions = if kind == "ipip" { &HERE[..1] } else { &HERE[..] };
        for node in versions {
            for protocol in [Protocol::Tcp, Protocol::Udp] {
                let mut talk = stage.open(&stage.outside, protocol, node, 8080);
                talk.chat(20, 1000).unwrap_or_else(|error| panic!("{kind} {node} {protocol:?}: {error:#}"));
            }
            // The least that any of them takes of a wire's 1500, and more than the container does.
            too_big::assert_told(&stage, kind, &stage.outside, SocketAddr::new(address(node), 8080), 1440);
        }
        assert_by_the_programs(&stage, &before, 20);
        stage.node.namespace().command("ip", &["link", "del", "way"]).unwrap();
        stage.outside.command("ip", &["link", "del", "way"]).unwrap();
        stage.wait_until("the tunnel is gone", |_| tunnels(&stage).is_empty());
    }
}
