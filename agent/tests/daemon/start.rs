//! Starting: what keeps an agent from it, and what the command line says.

use std::fs;
use std::process::Command;

use aya::maps::{HashMap, MapData};

use crate::rig::Rig;

pub(crate) fn verb(rig: &Rig, arguments: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shunt-agent"));
    let output = command.args(arguments).arg("--socket").arg(rig.socket()).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(said).unwrap())
}

#[test]
fn a_second_agent_is_kept_out_and_the_first_goes_on() {
    let rig = Rig::start("auto");
    assert_eq!(rig.run_to_end(rig.command("auto")), 1);
    assert!(rig.log().contains("another agent listens on"), "{}", rig.log());

    let mut elsewhere = Command::new(env!("CARGO_BIN_EXE_shunt-agent"));
    elsewhere.arg("run").arg("--socket").arg(rig.lab.root().join("second.sock"));
    elsewhere.arg("--state-dir").arg(rig.state()).arg("--bpffs").arg(rig.lab.bpf_directory("second"));
    let output = rig.node.enter(|| elsewhere.output().unwrap()).unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("another agent uses the state directory"), "{said}");
    assert!(rig.status().healthy);
}

#[test]
fn the_socket_of_a_dead_agent_is_taken_over_and_a_file_is_not() {
    let mut rig = Rig::start("auto");
    rig.kill();
    assert!(rig.socket().exists());
    rig.run("auto");
    rig.kill();
    fs::remove_file(rig.socket()).unwrap();
    fs::write(rig.socket(), "somebody's notes").unwrap();
    assert_eq!(rig.run_to_end(rig.command("auto")), 1);
    assert!(rig.log().contains("is not a socket"));
    assert_eq!(fs::read_to_string(rig.socket()).unwrap(), "somebody's notes");
}

#[test]
fn a_pinned_map_of_another_shape_is_refused_by_name() {
    let rig = Rig::bare();
    fs::create_dir_all(rig.pin("maps")).unwrap();
    let other = HashMap::<MapData, u32, u64>::create(8, 0).unwrap();
    other.pin(rig.pin("maps/PORTS")).unwrap();
    assert_eq!(rig.run_to_end(rig.command("auto")), 1);
    let log = rig.log();
    assert!(log.contains("v2/maps/PORTS is Hash of 8 × (4 → 8 bytes)"), "{log}");
}

#[test]
fn a_path_that_cannot_be_a_bpf_file_system_is_refused_with_what_to_do() {
    let rig = Rig::bare();
    let mut command = rig.command("auto");
    command.arg("--bpffs").arg(rig.lab.root().join("state-of-another/shunt"));
    fs::create_dir_all(rig.lab.root().join("state-of-another/occupied")).unwrap();
    // clap takes a flag once; the rig's own comes from `command`.
    assert_eq!(rig.run_to_end(command), 2);

    let mut command = Command::new(env!("CARGO_BIN_EXE_shunt-agent"));
    command.arg("run").arg("--socket").arg(rig.socket()).arg("--state-dir").arg(rig.state());
    command.arg("--bpffs").arg(rig.lab.root().join("state-of-another/shunt"));
    let output = rig.node.enter(|| command.output().unwrap()).unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("mount -t bpf bpf"), "{said}");
}

#[test]
fn a_configuration_with_an_unknown_key_is_refused_by_the_name_of_the_key() {
    let rig = Rig::bare();
    let config = rig.lab.root().join("config.toml");
    fs::write(&config, "sokcet = '/run/x'\n").unwrap();
    let mut command = rig.command("auto");
    command.arg("--config").arg(&config);
    assert_eq!(rig.run_to_end(command), 2);
    assert!(rig.log().contains("unknown field `sokcet`"), "{}", rig.log());
}

#[test]
fn query_verbs_end_with_0_answered_1_unreachable_2_usage() {
    let mut rig = Rig::start("auto");
    let port = rig.container(2);
    rig.attach(&port).unwrap();
    for name in ["status", "ports", "fdb", "drops", "capacity"] {
        let (code, said) = verb(&rig, &[name]);
        assert_eq!(code, 0, "{said}");
        let (code, json) = verb(&rig, &[name, "--json"]);
        assert_eq!(code, 0);
        serde_json::from_str::<serde_json::Value>(&json).unwrap();
        assert_eq!(verb(&rig, &[name, "--nonsense"]).0, 2);
    }
    assert!(verb(&rig, &["fdb"]).1.contains("02:00:00:00:00:02"));
    rig.kill();
    let (code, said) = verb(&rig, &["status"]);
    assert_eq!(code, 1);
    assert!(said.contains("cannot be reached"), "{said}");
}
