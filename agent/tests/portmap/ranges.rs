//! Large ranges of host ports: quick, or refused at once.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shunt_lab::{Agent, Protocol};

use crate::stage::{NODE, Stage, mapping};

/// The range's first port, and how many they are.
const FIRST: u16 = 10_000;
const MANY: u16 = 50_000;
/// On a busy machine, in an unoptimized build.
const SECONDS: Duration = Duration::from_secs(30);

/// How much more memory the agent may have while it has such a range, and after it has had several: some 1,300 and 330 bytes for a host port.
const MOST_GROWTH: u64 = 64 << 20;
const MOST_LOSS: u64 = 16 << 20;

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

/// The bytes of memory that the agent has.
fn resident(agent: &Agent) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", agent.id().unwrap())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[test]
fn the_memory_of_fifty_thousand_host_ports_of_both_families_is_bounded_and_none_is_lost() {
    let mut stage = Stage::new();
    // Who has a host port at all has the programs loaded.
    stage.add("first", &[mapping(8080, 7000, "tcp")]);
    let before = resident(stage.node.agent());
    let wanted = range(FIRST, MANY, "tcp");
    let mut after_each = Vec::new();
    for round in 0..4 {
        let begun = Instant::now();
        stage.add(&format!("round{round}"), &wanted);
        assert!(begun.elapsed() < SECONDS, "ADD took {:?}", begun.elapsed());
        let grown = resident(stage.node.agent()).saturating_sub(before);
        assert!(grown < MOST_GROWTH, "{grown} bytes more, with {MANY} host ports in round {round}");
        stage.sandboxes.pop().unwrap().delete(&stage.node, &stage.network).unwrap();
        after_each.push(resident(stage.node.agent()));
    }
    // What the allocator keeps it keeps after the second round.
    let [_, second, .., last] = after_each[..] else { unreachable!("there were four rounds") };
    assert!(last < second + MOST_LOSS, "what is not given back adds up: {before}, then {after_each:?}");
}

#[test]
fn seventy_thousand_ports_and_a_range_that_overlaps_anothers_are_refused_at_once_and_leave_nothing() {
    const TOO_MANY: u32 = 70_000;
    /// What somebody reads.
    const LONGEST: usize = 1_000;
    let mut stage = Stage::new();
    stage.add("one", &range(FIRST, 20_000, "tcp"));
    let before = stage.node.inventory().unwrap();
    let twice = (0..TOO_MANY).map(|number| mapping((number % 65_535) as u16 + 1, 80, "tcp")).collect();
    let beyond = (1..=TOO_MANY)
        .map(|number| json!({ "hostPort": number, "containerPort": 80, "protocol": "tcp" }))
        .collect();
    let cases: [(Vec<Value>, u64, &str); 4] = [
        (twice, 7, "tcp"),
        (beyond, 7, ""),
        (range(FIRST - 5_000, 10_000, "tcp"), 102, "pods/one/eth0"),
        (range(FIRST + 19_999, 20_000, "tcp"), 102, "pods/one/eth0"),
    ];
    for (number, (wanted, code, names)) in cases.iter().enumerate() {
        let network = stage.mapped(wanted);
        let begun = Instant::now();
        let (told, text) = stage.refused(&network, &format!("no{number}"));
        assert!(begun.elapsed() < SECONDS, "{number}: the refusal took {:?}", begun.elapsed());
        assert!(told == *code && text.contains(names) && text.len() < LONGEST, "{number}: {told} {text}");
        assert_eq!(stage.node.inventory().unwrap().since(&before), Vec::<String>::new(), "{number}");
    }
    // Its own are as they were, and what nobody has is free.
    let _echo = stage.echo(0, FIRST);
    stage.open(&stage.outside, Protocol::Tcp, NODE[0], FIRST).chat(5, 100).unwrap();
    stage.add("two", &range(FIRST + 20_000, 10, "tcp"));
}
