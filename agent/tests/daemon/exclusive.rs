//! Two agents, and more addresses than there is room for.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use shunt_agent_api::Request;

use crate::rig::{Rig, eventually};

/// What `start` gives back where the agent could not run.
const FAILURE: i32 = 1;

/// An agent with a socket and a state directory of its own.
fn other(rig: &Rig, pins: &Path) -> Command {
    let home = rig.lab.root().join("other");
    std::fs::create_dir_all(&home).unwrap();
    let log = File::options().create(true).append(true).open(home.join("log")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_shunt-agent"));
    command
        .arg("run")
        .arg("--socket")
        .arg(home.join("agent.sock"))
        .arg("--state-dir")
        .arg(home.join("state"));
    command.arg("--bpffs").arg(pins).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    command
}

/// What that one said.
fn said(rig: &Rig) -> String {
    std::fs::read_to_string(rig.lab.root().join("other/log")).unwrap_or_default()
}

#[test]
fn a_second_agent_in_the_namespace_is_refused_whatever_its_directories_and_harms_nothing() {
    let mut rig = Rig::start("auto");
    let port = rig.container(2);
    rig.attach(&port).unwrap();
    assert_eq!(rig.run_to_end(other(&rig, &rig.lab.bpf_directory("other"))), FAILURE);
    let wanted = format!("another agent (process {}) runs in this network namespace", rig.id());
    assert!(said(&rig).contains(&wanted), "{}", said(&rig));
    rig.check(&port).unwrap();
    assert_eq!(rig.status().repairs, 0);
}

#[test]
fn the_pins_of_an_agent_that_runs_or_of_another_namespace_are_nobody_elses() {
    let mut rig = Rig::start("auto");
    let port = rig.container(2);
    rig.attach(&port).unwrap();
    let elsewhere = rig.lab.namespace("elsewhere").unwrap();
    let again = |rig: &Rig| {
        let mut command = other(rig, &rig.lab.bpf_directory("agent"));
        let mut process = elsewhere.enter(|| command.spawn().unwrap()).unwrap();
        process.wait().unwrap().code().unwrap()
    };
    assert_eq!(again(&rig), FAILURE);
    assert!(said(&rig).contains("another agent uses the pins below"), "{}", said(&rig));
    rig.check(&port).unwrap();
    rig.kill();
    assert_eq!(again(&rig), FAILURE);
    assert!(said(&rig).contains("are of another network namespace"), "{}", said(&rig));
    rig.run("auto");
    rig.check(&port).unwrap();
    assert_eq!(rig.status().repairs, 0);
}

#[test]
fn more_addresses_than_there_is_room_for_are_a_warning() {
    let mut rig = Rig::bare();
    let mut batch = String::from("link add many type bridge\nlink set many up\n");
    for number in 0..4200 {
        batch += &format!("address add 10.{}.{}.1/32 dev many\n", 100 + number / 250, number % 250);
    }
    let path = rig.lab.root().join("batch");
    std::fs::write(&path, batch).unwrap();
    rig.ip(&["-batch", path.to_str().unwrap()]);
    rig.run("auto");
    let is_told =
        |rig: &Rig| rig.status().warnings.iter().any(|warning| warning.contains("do not fit into LOCALS"));
    assert!(is_told(&rig), "{:?}", rig.status().warnings);
    let port = rig.container(2);
    rig.attach(&port).unwrap();
    rig.ip(&["link", "delete", "many"]);
    eventually("there is room again", || !is_told(&rig));
    rig.ask(Request::Status).unwrap();
}
