//! A way out that takes less than the containers' links: whoever sends too much by a connection of the programs' is told, also where a
//! router would cut it, and nothing leaves from a container's own address.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::UdpGsoSegment;
use shunt_lab::{Conversation, Echo, Namespace, Protocol, patience, uninterrupted};

use crate::errors::any_like;
use crate::shares::dropped;
use crate::stage::{NODE, OUTSIDE, Stage, address, mapping};
use crate::uncut::{heed_no_router, may_be_cut};
use crate::wire::Wire;

/// Bytes that a packet may have on the way out; containers' links take 1500.
const TAKES: &str = "1400";
/// Bytes of a datagram that a container's link takes, and the way out does not.
const TOO_LARGE: usize = 1430;
const PATIENCE: Duration = Duration::from_secs(20);
const PAYLOAD: usize = 256 << 10;

/// A stage with two masqueraded containers, of which the first has host ports.
fn stage() -> Stage {
    let mut stage = Stage::new();
    stage.network = stage.network.with("ipMasq", serde_json::json!(true));
    stage.add("one", &[mapping(8053, 7000, "udp"), mapping(8080, 7000, "tcp")]);
    stage.add("two", &[]);
    stage.node.namespace().command("ip", &["link", "set", "up0", "mtu", TAKES]).unwrap();
    stage
}

fn socket(namespace: &Namespace, at: SocketAddr) -> UdpSocket {
    let socket = namespace.enter(|| UdpSocket::bind(at).unwrap()).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    may_be_cut(&socket);
    socket
}

/// Sends too large a datagram again and again until it arrives, and says from where.
fn until_arrived(what: &str, from: &UdpSocket, to: SocketAddr, at: &UdpSocket) -> SocketAddr {
    let (begun, mut heard) = (Instant::now(), [0; 2000]);
    loop {
        assert!(begun.elapsed() < patience(PATIENCE), "{what}: nothing arrives");
        // What somebody says of the last one.
        let _ = from.take_error();
        from.send_to(&[7; TOO_LARGE], to).unwrap();
        if let Ok((bytes, sender)) = uninterrupted(|| at.recv_from(&mut heard)) {
            assert_eq!(bytes, TOO_LARGE, "{what}");
            return sender;
        }
    }
}

/// Whether a frame has an address of the containers' as its source.
fn is_from_container(frame: &[u8]) -> bool {
    match frame.get(12..14) {
        Some([0x08, 0x00]) => frame.get(26..29) == Some(&[10, 77, 0]),
        Some([0x86, 0xdd]) => frame.get(22..24) == Some(&[0xfd, 0x77]),
        _ => false,
    }
}

#[test]
fn what_a_router_would_cut_is_cut_at_its_source_and_leaves_from_the_nodes_address_alone() {
    let stage = stage();
    let wire = Wire::tap(&stage.outside, "eth0");
    for ((node, outside), own) in NODE.into_iter().zip(OUTSIDE).zip(stage.sandboxes[0].addresses()) {
        // An answer by a host port.
        let server = socket(stage.sandboxes[0].namespace(), SocketAddr::new(own, 7000));
        let client = socket(&stage.outside, any_like(own));
        client.connect((address(node), 8053)).unwrap();
        client.send(b"how much?").unwrap();
        let mut heard = [0; 2000];
        let (_, asker) = uninterrupted(|| server.recv_from(&mut heard)).unwrap();
        until_arrived(&format!("an answer by {node}"), &server, asker, &client);
        // A masqueraded connection, of the programs' from its first datagram on.
        let server = socket(&stage.outside, SocketAddr::new(address(outside), 7001));
        let client = socket(stage.sandboxes[1].namespace(), any_like(own));
        client.send_to(b"first", server.local_addr().unwrap()).unwrap();
        let (_, first) = uninterrupted(|| server.recv_from(&mut heard)).unwrap();
        let what = format!("a masqueraded datagram to {outside}");
        let sender = until_arrived(&what, &client, server.local_addr().unwrap(), &server);
        assert_eq!((sender, sender.ip()), (first, address(node)), "{what}");
    }
    let seen = wire.at_hand();
    assert!(!seen.iter().any(|frame| is_from_container(frame)), "{seen:02x?}");
}

/// Several datagrams in one, which the device cuts: each of them is too large.
#[test]
fn a_sender_of_segments_that_do_not_fit_is_told() {
    let stage = stage();
    let client = stage.sandboxes[1].namespace();
    for outside in OUTSIDE {
        let at = SocketAddr::new(address(outside), 7001);
        let server = socket(&stage.outside, at);
        let client = socket(client, any_like(at.ip()));
        client.connect(at).unwrap();
        client.send(b"first").unwrap();
        uninterrupted(|| server.recv(&mut [0; 2000])).unwrap();
        cut_into(&client, TOO_LARGE);
        let begun = Instant::now();
        while client.send(&[7; 2 * TOO_LARGE]).is_ok() {
            assert!(
                begun.elapsed() < patience(PATIENCE),
                "{outside}: nobody says how much the way out takes"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(uninterrupted(|| server.recv(&mut [0; 2000])).is_err(), "{outside}: none of them has left");
    }
}

/// What a container sends that heeds no router.
const HOSTILE: u8 = 0xb5;
/// How often, of several datagrams each.
const BURSTS: usize = 500;
const EACH: usize = 20;

/// Whether a frame of the second container's is larger than the way out takes.
fn is_hostile_and_large(frame: &[u8]) -> bool {
    let most = 14 + TAKES.parse::<usize>().unwrap();
    frame.len() > most && frame.ends_with(&[HOSTILE; 16])
}

/// Conversations of the first container: masqueraded ones, and by its host ports.
fn talks(stage: &Stage, outside: &[Echo]) -> Vec<Conversation> {
    let inside = stage.sandboxes[0].namespace();
    let mut talks = Vec::new();
    for (echo, node) in outside.iter().zip(NODE) {
        for (protocol, port) in [(Protocol::Tcp, 8080), (Protocol::Udp, 8053)] {
            talks.push(Conversation::open(inside, protocol, echo.address()).unwrap());
            talks.push(stage.open(&stage.outside, protocol, node, port));
        }
    }
    talks
}

/// Nothing of it is larger on the way out than that takes, nothing leaves from its own address, and the others' connections go on.
#[test]
fn a_container_that_sends_large_segments_and_heeds_no_router_harms_nobody() {
    let stage = stage();
    let _inside = stage.echo(0, 7000);
    let outside = OUTSIDE.map(|outside| Echo::listen(&stage.outside, address(outside), 7001).unwrap());
    let mut talks = talks(&stage, &outside);
    let mut chat = |rounds| talks.iter_mut().for_each(|talk| talk.chat(rounds, 1000).unwrap());
    chat(2);
    let wire = Wire::tap(&stage.outside, "eth0");
    let before = dropped(stage.node.agent(), "too_big");
    let mut sent = 0;
    for (outside, may_be_cut) in OUTSIDE.into_iter().flat_map(|outside| [(outside, false), (outside, true)]) {
        let to = SocketAddr::new(address(outside), 7002 + u16::from(may_be_cut));
        let server = socket(&stage.outside, to);
        server.set_read_timeout(Some(patience(PATIENCE))).unwrap();
        let client = socket(stage.sandboxes[1].namespace(), any_like(to.ip()));
        heed_no_router(&client, may_be_cut);
        client.send_to(b"first", to).unwrap();
        uninterrupted(|| server.recv(&mut [0; 100])).unwrap();
        cut_into(&client, TOO_LARGE);
        for burst in 0..BURSTS {
            sent += usize::from(client.send_to(&[HOSTILE; EACH * TOO_LARGE], to).is_ok());
            if burst % 50 == 0 {
                chat(1);
            }
        }
    }
    assert!(sent > 3 * BURSTS, "its own kernel sends {sent}");
    assert!(dropped(stage.node.agent(), "too_big") > before, "what a router would cut is dropped");
    let seen = wire.at_hand();
    let large: Vec<_> = seen.iter().filter(|frame| is_hostile_and_large(frame)).map(Vec::len).collect();
    assert!(large.is_empty(), "of {large:?} bytes");
    assert!(!seen.iter().any(|frame| is_from_container(frame)), "something leaves from its own address");
    chat(5);
}

/// Has the kernel, or a device, cut what is sent into datagrams (`UDP_SEGMENT`, udp(7)).
fn cut_into(socket: &UdpSocket, bytes: usize) {
    setsockopt(socket, UdpGsoSegment, &bytes.try_into().unwrap()).unwrap();
}

/// The receiver says that it takes as much as the sender does: only the node knows better.
#[test]
fn a_stream_of_large_segments_adapts_to_the_way_out() {
    let stage = stage();
    for (outside, own) in OUTSIDE.into_iter().zip(stage.sandboxes[1].addresses()) {
        let at = SocketAddr::new(address(outside), 7002);
        let listener = stage.outside.enter(|| TcpListener::bind(at).unwrap()).unwrap();
        let inside = stage.sandboxes[1].namespace();
        let connect = || TcpStream::connect_timeout(&at, patience(PATIENCE)).unwrap();
        let mut client = inside.enter(connect).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.set_write_timeout(Some(patience(PATIENCE))).unwrap();
        server.set_read_timeout(Some(patience(PATIENCE))).unwrap();
        let (sent, mut heard) = (vec![7; PAYLOAD], vec![0; PAYLOAD]);
        std::thread::scope(|scope| {
            scope.spawn(|| client.write_all(&sent).unwrap());
            uninterrupted(|| server.read_exact(&mut heard)).unwrap_or_else(|error| panic!("{own}: {error}"));
        });
        let route = inside.command("ip", &["route", "get", outside]).unwrap();
        assert!(route.contains(&format!("mtu {TAKES}")), "it was not told: {route}");
    }
}
