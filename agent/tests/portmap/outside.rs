//! From outside to a container by a port of the node.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use shunt_lab::{Protocol, uninterrupted};

use crate::stage::{NODE, OUTSIDE, Stage, address, give, join, mapping};

const BOTH: [Protocol; 2] = [Protocol::Tcp, Protocol::Udp];
const PATIENCE: Duration = Duration::from_secs(10);

#[test]
fn a_host_outside_talks_to_a_container_by_the_nodes_address() {
    let mut stage = Stage::new();
    stage.add("one", &[mapping(8080, 7000, "tcp"), mapping(8080, 7000, "udp")]);
    let _echo = stage.echo(0, 7000);
    for node in NODE {
        for protocol in BOTH {
            let mut talk = stage.open(&stage.outside, protocol, node, 8080);
            talk.chat(200, 1400).unwrap_or_else(|error| panic!("{node} {protocol:?}: {error:#}"));
        }
        // 4 MiB, in pieces that the kernel hands on as they are.
        stage.open(&stage.outside, Protocol::Tcp, node, 8080).chat(128, 32 << 10).unwrap();
    }
    let counted = stage.node.agent().port("one").unwrap();
    assert!(counted.to.fast > 400 && counted.from.fast > 400, "{counted:?}");
    assert!(counted.from.kernel < 50, "what was translated was not left to the kernel: {counted:?}");
}

#[test]
fn the_container_sees_who_it_is_and_the_client_sees_the_node() {
    let mut stage = Stage::new();
    stage.add("one", &[mapping(8080, 7000, "tcp"), mapping(8053, 7001, "udp")]);
    for ((node, outside), own) in NODE.into_iter().zip(OUTSIDE).zip(stage.sandboxes[0].addresses()) {
        let inside = stage.sandboxes[0].namespace();
        let listener = inside.enter(|| TcpListener::bind((own, 7000)).unwrap()).unwrap();
        let client = stage
            .outside
            .enter(|| TcpStream::connect_timeout(&(address(node), 8080).into(), PATIENCE).unwrap())
            .unwrap();
        let (mut server, seen) = listener.accept().unwrap();
        assert_eq!(seen, client.local_addr().unwrap(), "the client's own address and port");
        assert_eq!(seen.ip(), address(outside));
        assert_eq!(server.local_addr().unwrap(), (own, 7000).into());
        server.write_all(b"hello").unwrap();
        let mut heard = [0; 5];
        (&client).read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"hello");

        let server = inside.enter(|| UdpSocket::bind((own, 7001)).unwrap()).unwrap();
        let client = stage.outside.enter(|| UdpSocket::bind((address(outside), 0)).unwrap()).unwrap();
        for socket in [&server, &client] {
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
        }
        client.send_to(b"who?", (address(node), 8053)).unwrap();
        let mut heard = [0; 8];
        let (_, seen) = uninterrupted(|| server.recv_from(&mut heard)).unwrap();
        assert_eq!(seen, client.local_addr().unwrap());
        server.send_to(b"me", seen).unwrap();
        let (_, from) = uninterrupted(|| client.recv_from(&mut heard)).unwrap();
        assert_eq!(from, (address(node), 8053).into(), "an unconnected socket hears the node");
    }
}

#[test]
fn each_uplink_and_each_address_leads_there_and_a_mapping_of_one_address_only_from_that() {
    let mut stage = Stage::new();
    let other = stage.lab.namespace("other").unwrap();
    join(&stage.node, "up1", &other, "eth0");
    for (namespace, ifname, ip) in
        [(stage.node.namespace(), "up1", "198.51.100.1/24"), (&other, "eth0", "198.51.100.9/24")]
    {
        give(namespace, ifname, ip);
    }
    let mut specific = mapping(8081, 7000, "tcp");
    specific["hostIP"] = "198.51.100.1".into();
    stage.add("one", &[mapping(8080, 7000, "tcp"), specific]);
    let _echo = stage.echo(0, 7000);
    stage.open(&stage.outside, Protocol::Tcp, NODE[0], 8080).chat(20, 1000).unwrap();
    stage.open(&other, Protocol::Tcp, "198.51.100.1", 8080).chat(20, 1000).unwrap();
    stage.open(&other, Protocol::Tcp, "198.51.100.1", 8081).chat(20, 1000).unwrap();
    let refused = stage
        .outside
        .enter(|| TcpStream::connect_timeout(&(address(NODE[0]), 8081).into(), PATIENCE))
        .unwrap();
    assert_eq!(refused.unwrap_err().kind(), std::io::ErrorKind::ConnectionRefused);

    // Addresses come and go while host ports are there.
    give(stage.node.namespace(), "up0", "192.0.2.2/24");
    give(stage.node.namespace(), "lo", "203.0.113.7/32");
    other.command("ip", &["route", "add", "203.0.113.7/32", "via", "198.51.100.1"]).unwrap();
    for (client, to) in [(&stage.outside, "192.0.2.2"), (&other, "203.0.113.7")] {
        let connect = || TcpStream::connect_timeout(&(address(to), 8080).into(), PATIENCE);
        stage.wait_until(&format!("{to} leads to the container"), |_| client.enter(connect).unwrap().is_ok());
        stage.open(client, Protocol::Tcp, to, 8080).chat(20, 1000).unwrap();
    }
}

#[test]
fn what_goes_through_the_node_to_somebody_elses_port_is_left_alone() {
    let mut stage = Stage::new();
    let beyond = stage.lab.namespace("beyond").unwrap();
    join(&stage.node, "up1", &beyond, "eth0");
    give(stage.node.namespace(), "up1", "198.51.100.1/24");
    give(&beyond, "eth0", "198.51.100.9/24");
    beyond.command("ip", &["route", "add", "default", "via", "198.51.100.1"]).unwrap();
    stage.outside.command("ip", &["route", "add", "default", "via", NODE[0]]).unwrap();
    stage.add("one", &[mapping(8080, 7000, "tcp")]);
    let echo = shunt_lab::Echo::listen(&beyond, address("198.51.100.9"), 8080).unwrap();
    assert_eq!(stage.wires(), ["cni0", "up0", "up1"]);
    stage.open(&stage.outside, Protocol::Tcp, "198.51.100.9", echo.address().port()).chat(20, 1000).unwrap();
    assert_eq!(stage.node.agent().port("one").unwrap().to.fast, 0);
}

#[test]
fn an_address_that_the_node_has_no_more_is_no_host_ports_address() {
    const MOVED: [&str; 2] = ["203.0.113.7", "2001:db8:7::7"];
    let mut stage = Stage::new();
    let beyond = stage.lab.namespace("beyond").unwrap();
    join(&stage.node, "up1", &beyond, "eth0");
    for (namespace, ifname, ips) in [
        (stage.node.namespace(), "up1", ["198.51.100.1/24", "2001:db8:1::1/64"]),
        (&beyond, "eth0", ["198.51.100.9/24", "2001:db8:1::9/64"]),
        (stage.node.namespace(), "lo", ["203.0.113.7/32", "2001:db8:7::7/128"]),
    ] {
        ips.iter().for_each(|ip| give(namespace, ifname, ip));
    }
    for (namespace, gateways) in [(&stage.outside, NODE), (&beyond, ["198.51.100.1", "2001:db8:1::1"])] {
        for gateway in gateways {
            namespace.command("ip", &["route", "add", "default", "via", gateway]).unwrap();
        }
    }
    stage.node.namespace().sysctl("net/ipv4/ip_forward", "1").unwrap();
    stage.node.namespace().sysctl("net/ipv6/conf/all/forwarding", "1").unwrap();
    stage.add("one", &[mapping(8080, 7000, "tcp"), mapping(8053, 7000, "udp")]);
    let _echo = stage.echo(0, 7000);
    for moved in MOVED {
        for (protocol, port) in [(Protocol::Tcp, 8080), (Protocol::Udp, 8053)] {
            stage.open(&stage.outside, protocol, moved, port).chat(5, 100).unwrap();
        }
    }

    // Nobody's: the node says so.
    for (moved, length) in MOVED.into_iter().zip(["32", "128"]) {
        let own = format!("{moved}/{length}");
        stage.node.namespace().command("ip", &["address", "del", &own, "dev", "lo"]).unwrap();
        let connect = || TcpStream::connect_timeout(&(address(moved), 8080).into(), PATIENCE);
        stage.wait_until(&format!("{moved} leads to no container"), |_| {
            stage.outside.enter(connect).unwrap().is_err()
        });
    }

    // Somebody else's: the way there goes through the node.
    let counted = stage.node.agent().port("one").unwrap();
    for (moved, (via, length)) in MOVED.into_iter().zip([("198.51.100.9", "32"), ("2001:db8:1::9", "128")]) {
        let own = format!("{moved}/{length}");
        stage.node.namespace().command("ip", &["route", "add", &own, "via", via]).unwrap();
        give(&beyond, "lo", &own);
        let _tcp = shunt_lab::Echo::listen(&beyond, address(moved), 8080).unwrap();
        stage.open(&stage.outside, Protocol::Tcp, moved, 8080).chat(20, 1000).unwrap();
        let _udp = shunt_lab::Echo::listen(&beyond, address(moved), 8053).unwrap();
        stage.open(&stage.outside, Protocol::Udp, moved, 8053).chat(20, 100).unwrap();
    }
    let after = stage.node.agent().port("one").unwrap();
    assert_eq!(
        (after.to.fast, after.from.fast),
        (counted.to.fast, counted.from.fast),
        "none of it came there"
    );
    stage.open(&stage.outside, Protocol::Tcp, NODE[0], 8080).chat(5, 100).unwrap();
}
