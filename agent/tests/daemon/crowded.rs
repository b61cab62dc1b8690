//! A table of translated connections that is large: it is told of beside the agent's work, and all of it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use shunt_agent_api::{
    BridgePort, Client, Envelope, ErrorKind, PART, PortMapping, Protocol, Reply, Request, frame,
};

use crate::kernel;
use crate::metrics::{self, ADDRESS};
use crate::rig::Rig;
use crate::socket;

/// Connections that the table has room for: more than one message has.
const ROOM: u32 = 131_072;

/// How long a list of them may take, with what prints it.
const LISTED: Duration = Duration::from_secs(60);

/// For so long attachments are made and taken away.
const MEASURED: Duration = Duration::from_secs(5);

/// What an attachment may take: a walk of the table takes longer.
const MEDIAN: Duration = Duration::from_millis(60);
const WORST: Duration = Duration::from_millis(400);

/// A node whose host port has so many connections, in a table with room for so many.
fn crowded(connections: u32, room: u32) -> (Rig, BridgePort) {
    let mut rig = Rig::bare();
    let room = room.to_string();
    rig.run_with("auto", &["--metrics", ADDRESS, "--max-flows", &room]);
    let mapping = PortMapping {
        protocol: Protocol::Udp,
        host_ip: None,
        host_port: 8080,
        container_port: 80,
        masquerade: false,
        keeps_source: false,
    };
    let port = BridgePort { mappings: vec![mapping], ..rig.container(2) };
    rig.attach(&port).unwrap();
    kernel::add_connections(&rig, &port, connections);
    (rig, port)
}

/// How long each attach and detach takes, the longest last.
fn attachments(rig: &Rig, port: &BridgePort) -> Vec<Duration> {
    let (begun, mut times) = (Instant::now(), Vec::new());
    while begun.elapsed() < MEASURED {
        let asked = Instant::now();
        rig.attach(port).unwrap();
        rig.detach(port).unwrap();
        times.push(asked.elapsed());
        thread::sleep(Duration::from_millis(20));
    }
    times.sort();
    times
}

/// Tells the readers when it goes that it is over, a panic included.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn attachments_are_quick_beside_scrapes_and_queries_of_a_large_table() {
    let (mut rig, _) = crowded(ROOM - 20_000, ROOM);
    let port = rig.container(3);
    let alone = attachments(&rig, &port);
    let (over, scrapes, queries) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    let beside = thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                metrics::get(&rig, "/metrics");
                scrapes.fetch_add(1, Ordering::Relaxed);
            }
        });
        for request in [Request::Flows, Request::Mappings] {
            let (rig, over, queries) = (&rig, &over, &queries);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let mut client = Client::connect(&rig.socket()).unwrap();
                    // Whether it is answered is another test's matter.
                    _ = client.ask(request.clone());
                    queries.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let _ending = Ending(&over);
        attachments(&rig, &port)
    });
    let figures = |times: &[Duration]| (times[times.len() / 2], times[times.len() - 1]);
    let (median, worst) = figures(&beside);
    println!(
        "median and worst alone {:?}; beside {scrapes:?} scrapes and {queries:?} queries {median:?}, {worst:?}",
        figures(&alone)
    );
    assert!(median < MEDIAN && worst < WORST, "{beside:?}");
}

#[test]
fn a_host_port_with_a_large_table_is_told_with_every_connection() {
    let (rig, _) = crowded(70_000, ROOM);
    let present = kernel::connections(&rig);
    let Ok(Reply::Mappings(mappings)) = rig.ask(Request::Mappings) else { panic!("no mappings") };
    assert_eq!(mappings.iter().map(|mapping| mapping.connections).sum::<u64>(), present as u64);
    let page = metrics::get(&rig, "/metrics");
    assert_eq!(metrics::sample(&page, "shunt_flows "), present as f64);
}

/// How many lines of the command's output have these words; the last line, too.
fn listed(rig: &Rig, arguments: &[&str], words: &str) -> (usize, String) {
    let begun = Instant::now();
    let mut command = Command::new(env!("CARGO_BIN_EXE_shunt-agent"));
    command.arg("flows").arg("--socket").arg(rig.socket()).args(arguments).stdout(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let (mut count, mut last) = (0, String::new());
    for line in BufReader::new(process.stdout.take().unwrap()).lines() {
        last = line.unwrap();
        count += usize::from(last.contains(words));
    }
    assert!(process.wait().unwrap().success());
    println!("{count} connections in {:?}", begun.elapsed());
    assert!(begun.elapsed() < LISTED);
    (count, last)
}

#[test]
fn every_connection_of_a_full_table_is_listed() {
    let (rig, _) = crowded(ROOM, ROOM);
    let present = kernel::connections(&rig);
    assert!(present > ROOM as usize * 9 / 10, "{present}");
    assert_eq!(listed(&rig, &["--json"], "\"translated\"").0, present);
    let (count, last) = listed(&rig, &[], "10.88.0.1:8080");
    assert_eq!(count, present);
    assert!(last.starts_with("udp "), "{last}");
}

#[test]
fn connections_come_in_parts_of_a_bounded_length_to_whom_takes_them() {
    let (rig, _) = crowded(5_000, ROOM);
    let mut stream = socket::connect(&rig);
    let request = Envelope { parts: true, ..Envelope::new(Request::Flows) };
    stream.write_all(&frame::encode(&request).unwrap()).unwrap();
    let (mut parts, mut more) = (Vec::new(), true);
    while more {
        let part = socket::hear_envelope(&mut stream);
        let Reply::Flows(flows) = part.body else { panic!("{part:?}") };
        parts.push(flows.len());
        more = part.more;
    }
    assert_eq!(parts, [PART, PART, 5_000 - 2 * PART]);
    stream.write_all(&frame::encode(&Envelope::new(Request::Status)).unwrap()).unwrap();
    assert!(matches!(socket::hear(&mut stream), Reply::Status(_)), "the connection goes on");
    let mut client = Client::connect(&rig.socket()).unwrap();
    assert!(matches!(client.ask(Request::Flows), Ok(Reply::Flows(flows)) if flows.len() == 5_000));
}

#[test]
fn a_list_that_is_too_long_is_refused_to_whom_does_not_take_parts() {
    let (rig, port) = crowded(5_000, ROOM);
    let mut stream = socket::connect(&rig);
    let mut ask = || {
        stream.write_all(&frame::encode(&Envelope::new(Request::Flows)).unwrap()).unwrap();
        socket::hear_envelope(&mut stream)
    };
    let short = ask();
    assert!(!short.more && matches!(short.body, Reply::Flows(flows) if flows.len() == 5_000));
    // More than one message has room for.
    kernel::add_connections(&rig, &port, ROOM - 20_000);
    assert_eq!(socket::kind(ask().body), ErrorKind::NotBuilt);
}
