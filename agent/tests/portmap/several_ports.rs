//! Containers with several host ports: what one may have of the tables of connections is for all of its host ports together, and none of another
//! container's.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use shunt_lab::{Conversation, Lab, Protocol};

use crate::many::patiently;
use crate::shares::dropped;
use crate::stage::{NODE, OUTSIDE, Stage, address, mapping};

/// Connections that there is room for, and of which one container may open a quarter in a second, and at once, that nobody answers.
const ROOM: u16 = 1024;
const QUARTER: f64 = 256.0;
const OPENINGS: u16 = 6_000;
/// How much more than the rate may pass: entries and seconds are not counted to the last one.
const MARGIN: f64 = 1.3;

/// Two containers, of which the first has two host ports of each protocol.
fn stage(arguments: &[&str]) -> Stage {
    let mut stage = Stage::with(Lab::with_all_programs().unwrap(), arguments);
    let [tcp, udp] = [[(8080, 7000), (8081, 7001)], [(8053, 7000), (8054, 7001)]];
    let tcp = tcp.map(|(at, to)| mapping(at, to, "tcp"));
    let udp = udp.map(|(at, to)| mapping(at, to, "udp"));
    stage.add("one", &[tcp, udp].concat());
    stage.add("two", &[mapping(8090, 7000, "tcp"), mapping(8055, 7000, "udp")]);
    stage
}

fn open(stage: &Stage, port: u16) -> Conversation {
    let mut talk = stage.open(&stage.outside, Protocol::Tcp, NODE[0], port);
    talk.chat(2, 100).unwrap();
    talk
}

/// Whether a host port takes another connection.
fn is_open(stage: &Stage, port: u16) -> bool {
    let to = SocketAddr::new(address(NODE[0]), port);
    let connect = || TcpStream::connect_timeout(&to, Duration::from_millis(700)).map(drop);
    match stage.outside.enter(connect).unwrap() {
        Ok(()) => true,
        Err(error) if error.kind() == ErrorKind::TimedOut => false,
        Err(error) => panic!("{port}: {error}"),
    }
}

#[test]
fn the_host_ports_of_one_container_share_its_connections_and_those_of_two_do_not() {
    let stage = stage(&["--max-flows", "4096", "--max-flows-per-container", "20"]);
    let _echoes = [(0, 7000), (0, 7001), (1, 7000)].map(|(index, port)| stage.echo(index, port));
    let mut talks: Vec<_> = (0..10).flat_map(|_| [8080, 8081].map(|port| open(&stage, port))).collect();
    assert_eq!([8080, 8081].map(|port| is_open(&stage, port)), [false; 2], "20 of both together");
    talks.extend((0..20).map(|_| open(&stage, 8090)));
    assert!(!is_open(&stage, 8090), "20 of the other one's");
    // One that has ended by the one host port makes room at the other.
    drop(talks.remove(0));
    stage.wait_until("there is room for one more", |_| is_open(&stage, 8081));
    talks.iter_mut().for_each(|talk| talk.chat(2, 100).unwrap());
}

/// Sends a datagram from each of many ports to these host ports in turn. Returns how many were let through, and the seconds that it took.
fn flood(stage: &Stage, host_ports: [u16; 2]) -> (f64, f64) {
    let before = dropped(stage.node.agent(), "opening_rate");
    let begun = Instant::now();
    let send = || {
        for (at, source) in (20_000..20_000 + OPENINGS).enumerate() {
            let socket = patiently(|| UdpSocket::bind((address(OUTSIDE[0]), source)));
            patiently(|| socket.send_to(b"x", (address(NODE[0]), host_ports[at % 2])));
        }
    };
    stage.outside.enter(send).unwrap();
    let took = begun.elapsed().as_secs_f64();
    let refused = dropped(stage.node.agent(), "opening_rate") - before;
    (f64::from(OPENINGS) - refused as f64, took)
}

#[test]
fn the_host_ports_of_one_container_share_its_openings_and_those_of_two_do_not() {
    let room = ROOM.to_string();
    // Nobody listens, so nobody answers.
    let one = stage(&["--max-flows", &room]);
    let (passed, took) = flood(&one, [8053, 8054]);
    let share = QUARTER * (1.0 + took);
    assert!(passed >= QUARTER / MARGIN, "{passed} in {took} s");
    assert!(passed <= share * MARGIN, "both have {passed} in {took} s, one share is {share}");
    let two = stage(&["--max-flows", &room]);
    let (passed, took) = flood(&two, [8053, 8055]);
    assert!(passed >= 2.0 * QUARTER / MARGIN, "{passed} in {took} s");
    assert!(passed <= 2.0 * QUARTER * (1.0 + took) * MARGIN, "{passed} in {took} s");
}
