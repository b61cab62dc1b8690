//! ICMP errors about connections by host ports that the programs carry: the container hears what routers and clients say of its answers.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::libc;
use shunt_lab::{Namespace, patience, uninterrupted};

use crate::heeded::nft;
use crate::opened::{HEED, HOST_PORT, INNER_PORT, NODE, NOTICED, OUTSIDE, Opened};
use crate::opened_carried::RULES;
use crate::uncut::never_cut;

/// A client behind the host outside, and that one's addresses there.
const FAR: [&str; 2] = ["198.51.100.9", "2001:db8:1::9"];
const ROUTER: [&str; 2] = ["198.51.100.1", "2001:db8:1::1"];

/// What the container's link takes, and not the client's.
const LARGE: [u8; 1350] = [7; 1350];

/// Somebody behind the host outside, which passes on packets of 1280 bytes at most, and says so each time.
fn behind_a_narrow_link(opened: &Opened) -> Namespace {
    let (outside, node) = (&opened.outside, opened.stage.node.namespace());
    let far = opened.stage.lab.namespace("far").unwrap();
    outside.pair("far0", &far, "eth0").unwrap();
    outside.command("ip", &["link", "set", "far0", "mtu", "1280"]).unwrap();
    for (setting, value) in [
        ("net/ipv4/ip_forward", "1"),
        ("net/ipv6/conf/all/forwarding", "1"),
        ("net/ipv4/icmp_ratelimit", "0"),
        ("net/ipv6/icmp/ratelimit", "0"),
    ] {
        outside.sysctl(setting, value).unwrap();
    }
    for (family, length) in ["24", "64"].into_iter().enumerate() {
        for (namespace, ifname, own) in [(outside, "far0", ROUTER), (&far, "eth0", FAR)] {
            let own = format!("{}/{length}", own[family]);
            namespace.command("ip", &["address", "add", &own, "dev", ifname, "nodad"]).unwrap();
        }
        far.command("ip", &["route", "add", NODE[family], "via", ROUTER[family]]).unwrap();
        node.command("ip", &["route", "add", FAR[family], "via", OUTSIDE[family]]).unwrap();
    }
    far
}

fn bound(namespace: &Namespace, at: SocketAddr) -> UdpSocket {
    let socket = namespace.enter(|| UdpSocket::bind(at)).unwrap().unwrap();
    socket.set_read_timeout(Some(patience(NOTICED))).unwrap();
    socket
}

/// Whether the programs carry what this client has begun.
fn is_carried(opened: &Opened, port: u16) -> bool {
    let flows = opened.stage.node.agent().ask("flows").unwrap();
    let mut flows = flows.as_array().expect("flows").iter();
    flows.any(|flow| flow["kernel"] == true && (flow["sport"] == port || flow["dport"] == port))
}

/// Questions and answers by the host port until the programs carry them; as whom the container sees the client.
fn until_carried(opened: &Opened, server: &UdpSocket, client: &UdpSocket, to: SocketAddr) -> SocketAddr {
    let (begun, port) = (Instant::now(), client.local_addr().unwrap().port());
    loop {
        client.send_to(b"word", to).unwrap();
        let (_, from) = uninterrupted(|| server.recv_from(&mut [0; 8])).unwrap();
        server.send_to(b"word", from).unwrap();
        uninterrupted(|| client.recv_from(&mut [0; 8])).unwrap();
        if is_carried(opened, port) {
            return from;
        }
        assert!(begun.elapsed() < patience(2 * NOTICED), "{}", opened.stage.node.agent().log_tail());
        sleep(Duration::from_millis(20));
    }
}

/// Sends until the socket says that it cannot so.
fn until_told(
    what: &str,
    mut send: impl FnMut() -> std::io::Result<usize>,
    is_it: impl Fn(&std::io::Error) -> bool,
) {
    let begun = Instant::now();
    while !send().is_err_and(|error| is_it(&error)) {
        assert!(begun.elapsed() < patience(NOTICED), "{what}: nobody says so");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_container_hears_of_answers_that_are_carried_what_routers_and_clients_say() {
    let opened = Opened::set(HEED);
    nft(&opened.stage, RULES);
    opened.until_opened(true);
    let far = behind_a_narrow_link(&opened);
    let two = &opened.stage.sandboxes[1];
    for (family, inner) in two.addresses().into_iter().enumerate() {
        let at = |ip: &str, port| SocketAddr::new(ip.parse().unwrap(), port);
        let server = bound(two.namespace(), (inner, INNER_PORT).into());
        never_cut(&server);
        let own = at(FAR[family], 5_000 + family as u16);
        let client = bound(&far, own);
        let seen = until_carried(&opened, &server, &client, at(NODE[family], HOST_PORT));
        assert_eq!(seen, own);
        until_told(
            "a router",
            || server.send_to(&LARGE, seen),
            |error| error.raw_os_error() == Some(libc::EMSGSIZE),
        );
        let route = two.namespace().command("ip", &["route", "get", FAR[family]]).unwrap();
        assert!(route.contains("mtu 1280"), "{route}");
        // What fits is heard, and then that nobody listens any more.
        server.send_to(b"word", seen).unwrap();
        uninterrupted(|| client.recv_from(&mut [0; 8])).unwrap();
        drop(client);
        server.connect(seen).unwrap();
        until_told(
            "the client",
            || server.send(b"word"),
            |error| error.kind() == ErrorKind::ConnectionRefused,
        );
    }
}
