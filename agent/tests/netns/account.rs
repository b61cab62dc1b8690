//! Packets are conserved: what came in at a port was delivered, passed to the kernel or dropped for a reason.

use std::process::Command;

use serde_json::{Value, json};
use shunt_lab::Binaries;

use crate::restrictions::tap;
use crate::stage::Stage;
use crate::wire::{BROADCAST, Wire, frame};

/// Nobody's address.
const NOBODY: [u8; 6] = [2, 0xde, 0xad, 0, 0, 1];

/// Frames between two looks at what has come, which has to fit into a socket.
const PIECE: u64 = 1_000;

/// Two checked containers and an open one.
fn stage() -> Stage {
    let mut stage = Stage::empty();
    let open = stage.network.clone();
    stage.network = open.clone().with("macspoofchk", json!(true));
    stage.add("one");
    stage.add("two");
    stage.network = open;
    stage.add("three");
    stage
}

/// The exit code, and each port's account.
fn accounts(stage: &Stage, arguments: &[&str]) -> (i32, Vec<Value>) {
    let mut command = Command::new(Binaries::find().unwrap().agent());
    command.args(["account", "--json", "--socket"]).arg(stage.node.agent().socket()).args(arguments);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let accounts = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    (output.status.code().unwrap(), accounts)
}

fn of<'a>(accounts: &'a [Value], container: &str) -> &'a Value {
    accounts.iter().find(|account| account["container"] == container).unwrap()
}

/// Sends as many frames: to one container, to nobody, to all, and under a wrong address.
fn send(from: &Wire, to: &Wire, count: u64) {
    let mixed = [
        frame(to.mac(), from.mac(), "delivered"),
        frame(NOBODY, from.mac(), "passed"),
        frame(to.mac(), NOBODY, "dropped"),
        frame(to.mac(), from.mac(), "delivered"),
    ];
    let to_all = frame(BROADCAST, from.mac(), "to all");
    for at in 0..count {
        let frame = if at % PIECE == 0 { &to_all } else { &mixed[(at % 4) as usize] };
        from.send(frame);
        if at % PIECE == 0 {
            to.at_hand();
        }
    }
}

/// What one container sends is accounted for at every port.
fn hold(count: u64) {
    let stage = stage();
    let wires = [tap(&stage.sandboxes[0]), tap(&stage.sandboxes[1])];
    wires.iter().for_each(|wire| drop(wire.until_silence()));
    let (_, before) = accounts(&stage, &[]);
    send(&wires[0], &wires[1], count);
    let (code, after) = accounts(&stage, &[]);
    assert_eq!(code, 0, "{after:#?}");
    let figure =
        |accounts: &[Value], pointer: &str| of(accounts, "one").pointer(pointer).unwrap().as_u64().unwrap();
    let came = |pointer| figure(&after, pointer) - figure(&before, pointer);
    let parts = ["/from/in", "/from/delivered", "/from/passed", "/from/dropped"].map(came);
    println!("in {}, delivered {}, passed {}, dropped {}", parts[0], parts[1], parts[2], parts[3]);
    assert_eq!(parts[0], parts[1..].iter().sum::<u64>());
    // The container's own stack may say something meanwhile.
    assert!((count..count + 100).contains(&parts[0]), "{parts:?}");
    assert!(parts[1] >= count / 2 - count / PIECE && parts[3] >= count / 4 - count / PIECE, "{parts:?}");
    let drops = of(&after, "one")["drops"].as_array().unwrap();
    let spoofed = drops.iter().find(|drop| drop["reason"] == "source_spoofed").unwrap();
    assert_eq!(spoofed["packets"], of(&after, "one")["from"]["dropped"]);
}

#[test]
fn what_came_in_at_a_port_is_delivered_passed_or_dropped_for_a_reason() {
    hold(20_000);
}

#[test]
#[ignore = "ten million packets take a minute: xtask test --long"]
fn ten_million_packets_are_conserved() {
    hold(10_000_000);
}

#[test]
fn conversations_of_every_kind_are_accounted_for() {
    let stage = stage();
    for (client, server) in [(0, 1), (1, 2), (2, 0)] {
        stage.assert_talk(client, server);
    }
    crate::restrictions::assert_talk_to_gateway(&stage, &stage.sandboxes[0]);
    let (code, accounts) = accounts(&stage, &[]);
    assert_eq!((code, accounts.len()), (0, 3), "{accounts:#?}");
    assert!(accounts.iter().all(|account| account["from"]["in"].as_u64().unwrap() > 40), "{accounts:#?}");
}

#[test]
fn packets_that_no_program_has_counted_are_named_with_their_number_and_an_exit_code() {
    let mut stage = stage();
    let wire = tap(&stage.sandboxes[2]);
    wire.until_silence();
    assert_eq!(accounts(&stage, &[]).0, 0);
    crate::restrictions::lose_programs(&mut stage.node);
    for _ in 0..50 {
        wire.send(&frame(NOBODY, wire.mac(), "unseen"));
    }
    stage.node.restart_agent().unwrap();
    let (code, told) = accounts(&stage, &[]);
    assert_eq!(code, 3, "{told:#?}");
    let missing = of(&told, "three")["unaccounted"]["packets"].as_i64().unwrap();
    assert!((50..70).contains(&missing), "{told:#?}");
    // Of a time when the programs were there nothing is missing.
    let (code, told) = accounts(&stage, &["--for", "200ms"]);
    assert_eq!((code, told.len()), (0, 3), "{told:#?}");
    stage.node.agent_mut().kill().unwrap();
    let mut command = Command::new(Binaries::find().unwrap().agent());
    let dead = command.arg("account").arg("--socket").arg(stage.node.agent().socket()).output().unwrap();
    assert_eq!(dead.status.code(), Some(1));
}
