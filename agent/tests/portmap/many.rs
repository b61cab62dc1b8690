//! Many connections at a time: they are held, those that live outlive the others, and nothing of them stays.

use std::collections::HashSet;
use std::io::Read as _;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use aya::maps::{HashMap, Map, MapData};
use serde_json::Value;
use shunt_dataplane::abi::ABI_VERSION;
use shunt_dataplane::abi::translation::{Translation, TupleKey};
use shunt_lab::{Agent, Lab, Protocol};

use crate::stage::{NODE, Stage, address, give, mapping};

/// Source ports of one address, beginning here.
const FIRST: u16 = 10_000;

fn stage(max_flows: &str) -> Stage {
    let mut stage = Stage::with(Lab::with_all_programs().unwrap(), &["--max-flows", max_flows]);
    stage.add("one", &[mapping(8080, 7000, "tcp"), mapping(8053, 7000, "udp"), mapping(8081, 7001, "tcp")]);
    stage
}

/// One datagram from each of so many ports of an address outside, which nobody waits to be answered.
pub(crate) fn datagrams(stage: &Stage, from: &str, first: u16, count: u16) {
    let to = SocketAddr::new(address(NODE[0]), 8053);
    let send = || {
        (first..first + count).for_each(|port| {
            // A machine that is short of memory for a moment refuses sockets and packets; neither is what is tested.
            let socket = patiently(|| UdpSocket::bind((address(from), port)));
            patiently(|| socket.send_to(b"x", to));
        });
    };
    stage.outside.enter(send).unwrap();
}

pub(crate) fn patiently<T>(mut attempt: impl FnMut() -> std::io::Result<T>) -> T {
    let begun = Instant::now();
    loop {
        match attempt() {
            Ok(done) => return done,
            Err(error) => assert!(begun.elapsed() < Duration::from_secs(10), "{error}"),
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A server on port 7001 that closes every connection at once, until it is told to stop.
fn closer(stage: &Stage, own: IpAddr) -> (Arc<AtomicBool>, JoinHandle<()>) {
    let listener = stage.sandboxes[0].namespace().enter(|| TcpListener::bind((own, 7001)).unwrap()).unwrap();
    listener.set_nonblocking(true).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let serve = move || {
        while !stopped.load(Ordering::Relaxed) {
            if listener.accept().is_err() {
                std::thread::sleep(Duration::from_micros(100));
            }
        }
    };
    (stop, std::thread::spawn(serve))
}

fn connections(stage: &Stage, host_port: u16) -> u64 {
    let mappings = stage.node.agent().ask("mappings").unwrap();
    let of = |mapping: &&Value| mapping["host_port"] == host_port;
    mappings.as_array().unwrap().iter().find(of).unwrap()["connections"].as_u64().unwrap()
}

/// How many entries the programs have, halves without the other one among them, which nobody would tell of.
fn entries(agent: &Agent) -> usize {
    let of = |name| flows(agent, name).keys().map(Result::unwrap).collect::<Vec<TupleKey>>();
    of("ASSURED").into_iter().chain(of("FLOWS")).collect::<HashSet<_>>().len()
}

/// `ASSURED` or `FLOWS`.
pub(crate) fn flows(agent: &Agent, name: &str) -> HashMap<MapData, TupleKey, Translation> {
    let pin = agent.bpffs().join(format!("v{ABI_VERSION}/maps/{name}"));
    let map = Map::from_map_data(MapData::from_pin(pin).unwrap()).unwrap();
    HashMap::try_from(map).unwrap()
}

#[test]
fn thousands_of_connections_are_held_at_a_time() {
    let mut stage = stage("20000");
    let echo = stage.echo(0, 7000);
    datagrams(&stage, "192.0.2.9", FIRST, 5_000);
    assert_eq!(connections(&stage, 8053), 5_000);
    // Each of them is the one that it was, and goes on.
    datagrams(&stage, "192.0.2.9", FIRST, 5_000);
    assert_eq!(connections(&stage, 8053), 5_000);
    assert_eq!(entries(stage.node.agent()), 10_000, "two for each");
    drop(echo);
    stage.sandboxes.pop().unwrap().delete(&stage.node, &stage.network).unwrap();
    stage.wait_until("no half of them stays", |agent| entries(agent) == 0);
}

#[test]
fn a_connection_that_is_idle_outlives_a_flood_that_fills_the_table() {
    let stage = stage("2048");
    let _echo = stage.echo(0, 7000);
    let mut talk = stage.open(&stage.outside, Protocol::Tcp, NODE[0], 8080);
    talk.chat(2, 100).unwrap();
    for batch in 0..60 {
        datagrams(&stage, "192.0.2.9", FIRST + 200 * batch, 200);
    }
    talk.chat(2, 100).unwrap_or_else(|error| panic!("after 12,000 others: {error:#}"));
    let held = connections(&stage, 8053);
    assert!((500..=2_048).contains(&held), "the flood has taken the room that there is, and no more: {held}");
    // Two entries for each of 12,000, and room for 4,096.
    stage.wait_until("what was forgotten is counted", |agent| {
        agent.status().unwrap().flow_evictions >= 10_000
    });
    // And a new one finds its place.
    stage.open(&stage.outside, Protocol::Tcp, NODE[1], 8080).chat(5, 100).unwrap();
}

#[test]
#[ignore = "takes minutes and prints figures: xtask test --long"]
#[allow(clippy::print_stdout, reason = "figures")]
fn two_hundred_thousand_are_held_and_a_million_short_ones_leave_nothing() {
    let stage = stage("262144");
    let _echo = stage.echo(0, 7000);
    let begun = Instant::now();
    for last in ["9", "10", "11", "12"] {
        if last != "9" {
            give(&stage.outside, "eth0", &format!("192.0.2.{last}/24"));
        }
        datagrams(&stage, &format!("192.0.2.{last}"), FIRST, 50_000);
    }
    let held = connections(&stage, 8053);
    println!("{held} of 200,000 connections held, made in {:?}", begun.elapsed());
    assert_eq!(held, 200_000);
    let begun = Instant::now();
    // One thread that takes and closes: an echo server has one for each connection.
    let own = stage.sandboxes[0].addresses();
    let servers: Vec<_> = own.into_iter().map(|own| closer(&stage, own)).collect();
    let short = |name: &str| {
        let to = SocketAddr::new(address(name), 8081);
        for _ in 0..250_000 {
            let mut stream = TcpStream::connect_timeout(&to, Duration::from_secs(30)).unwrap();
            assert_eq!(stream.read(&mut [0]).unwrap(), 0, "it closes first");
        }
    };
    let (whole, short) = (&stage, &short);
    std::thread::scope(|scope| {
        for name in [NODE[0], NODE[1], NODE[0], NODE[1]] {
            scope.spawn(move || whole.outside.enter(|| short(name)).unwrap());
        }
    });
    for (stop, server) in servers {
        stop.store(true, Ordering::Relaxed);
        server.join().unwrap();
    }
    println!("1,000,000 short connections in {:?}", begun.elapsed());
    let begun = Instant::now();
    while connections(&stage, 8081) + connections(&stage, 8053) > 0 {
        assert!(begun.elapsed() < Duration::from_secs(900), "something stays");
        std::thread::sleep(Duration::from_secs(10));
    }
    stage.wait_until("no half of them stays", |agent| entries(agent) == 0);
    println!("nothing left {:?} after the last", begun.elapsed());
}
