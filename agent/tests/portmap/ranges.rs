//! Large ranges of host ports: quick, or refused at once.

use std::time::{Duration, Instant};

use serde_json::Value;
use shunt_lab::Protocol;

use crate::stage::{NODE, Stage, mapping};

/// The range's first port, and how many they are.
const FIRST: u16 = 10_000;
const MANY: u16 = 50_000;
/// On a busy machine, in an unoptimized build.
const SECONDS: Duration = Duration::from_secs(30);

fn range(first: u16, count: u16, protocol: &str) -> Vec<Value> {
    (first..first + count).map(|port| mapping(port, port, protocol)).collect()
}

#[test]
fn fifty_thousand_host_ports_of_both_families_come_and_go_in_seconds() {
    let mut stage = Stage::new();
    let begun = Instant::now();
    stage.add("one", &range(FIRST, MANY, "tcp"));
    assert!(begun.elapsed() < SECONDS, "ADD took {:?}", begun.elapsed());
    let last = FIRST + MANY - 1;
    for port in [FIRST, 30_000, last] {
        let _echo = stage.echo(0, port);
        for node in NODE {
            stage.open(&stage.outside, Protocol::Tcp, node, port).chat(5, 1000).unwrap();
        }
        stage.open(stage.node.namespace(), Protocol::Tcp, "127.0.0.1", port).chat(5, 1000).unwrap();
    }
    let sandbox = &stage.sandboxes[0];
    let network = stage.mapped(&range(FIRST, MANY, "tcp"));
    network.check(stage.node.namespace(), sandbox.container(), &sandbox.attachment().result).unwrap();
    let (code, text) = stage.refused(&stage.mapped(&range(last, 1, "tcp")), "two");
    assert!(code == 102 && text.contains(&last.to_string()), "{code} {text}");
    // The next agent goes on with all of them.
    stage.node.agent_mut().kill().unwrap();
    stage.node.restart_agent().unwrap();
    let _echo = stage.echo(0, last);
    stage.open(&stage.outside, Protocol::Tcp, NODE[0], last).chat(5, 1000).unwrap();
    let begun = Instant::now();
    stage.sandboxes.pop().unwrap().delete(&stage.node, &stage.network).unwrap();
    assert!(begun.elapsed() < SECONDS, "DEL took {:?}", begun.elapsed());
    assert_eq!(stage.wires(), Vec::<String>::new());
}

#[test]
fn more_than_there_is_room_for_are_refused_by_their_number_and_leave_nothing() {
    let mut stage = Stage::new();
    stage.add("tcp", &range(FIRST, MANY, "tcp"));
    stage.add("udp", &range(FIRST, MANY, "udp"));
    let before = stage.node.inventory().unwrap();
    let begun = Instant::now();
    let (code, text) = stage.refused(&stage.mapped(&range(FIRST, MANY, "sctp")), "sctp");
    assert!(begun.elapsed() < SECONDS, "the refusal took {:?}", begun.elapsed());
    assert!(code == 101 && text.contains("100000") && text.contains("62144"), "{code} {text}");
    assert_eq!(stage.node.inventory().unwrap().since(&before), Vec::<String>::new());
}
