//! `shunt-agent check`, and what `status` says of the agent's health.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::kernel;
use crate::rig::{BRIDGE, Rig, eventually};
use crate::start::verb;

/// Exit code and words of `shunt-agent check`.
fn check(rig: &Rig) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shunt-agent"));
    let output = command.args(["check", "--socket"]).arg(rig.socket()).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

fn json_of(said: &str) -> Value {
    serde_json::from_str(said).unwrap_or_else(|error| panic!("{error}: {said}"))
}

#[test]
fn check_ends_with_0_while_everything_is_consistent_and_with_3_and_names_otherwise() {
    let mut rig = Rig::start_without_repairs();
    assert_eq!(check(&rig).0, 0);
    let port = rig.container(2);
    rig.attach(&port).unwrap();
    assert_eq!(check(&rig), (0, "everything is consistent\n".to_owned()));
    kernel::remove_station(&rig, port.bridge.index, kernel::container_mac(2));
    kernel::remove_port(&rig, port.host.index);
    rig.ip(&["link", "set", "veth2", "nomaster"]);
    let (code, said) = check(&rig);
    assert_eq!(code, 3);
    for finding in [
        "net/c2/eth0: veth2 is not a port of br0",
        "net/c2/eth0: the entry of 02:00:00:00:00:02 in FDB is missing",
        "net/c2/eth0: the entry of veth2 in PORTS is missing",
    ] {
        assert!(said.contains(finding), "{finding}: {said}");
    }
    rig.kill();
    assert_eq!(check(&rig).0, 1);
}

#[test]
fn an_agent_is_not_healthy_while_a_container_is_without_its_bridge() {
    let mut rig = Rig::start_without_repairs();
    let port = rig.container(2);
    rig.attach(&port).unwrap();
    rig.ip(&["link", "del", BRIDGE]);
    let complains =
        || rig.status().reasons.iter().any(|reason| reason.contains("its bridge br0 was deleted"));
    eventually("there is a reason", complains);
    let (code, said) = check(&rig);
    assert!(code == 3 && said.contains("net/c2/eth0"), "{code}: {said}");
    assert!(!rig.status().healthy);
    rig.ip(&["link", "del", "veth2"]);
    eventually("there is none any more", || !complains() && check(&rig).0 == 0);
    assert!(rig.status().healthy);
}

#[test]
fn an_agent_that_could_write_nothing_down_is_not_healthy() {
    let mut rig = Rig::bare();
    let state = rig.state();
    fs::create_dir(&state).unwrap();
    let directory = state.to_str().unwrap();
    shunt_lab::run("mount", &["-t", "tmpfs", "-o", "size=64k", "tmpfs", directory]).unwrap();
    rig.run("auto");
    assert!(rig.status().healthy);
    let filler = state.join("filler");
    fs::write(&filler, vec![1; 1 << 20]).unwrap_err();
    let status = rig.status();
    assert!(!status.healthy && status.reasons[0].contains("cannot write"), "{:?}", status.reasons);
    assert_eq!(status.obstacles, status.reasons, "no ADD would work");
    assert_eq!(check(&rig).0, 3);
    assert_eq!(verb(&rig, &["status", "--live"]), (0, "live\n".to_owned()));
    let (code, said) = verb(&rig, &["status", "--ready"]);
    assert!(code == 1 && said.contains("cannot write"), "{code} {said}");
    let (code, said) = verb(&rig, &["status", "--ready", "--json"]);
    assert_eq!((code, json_of(&said)), (1, json!({ "ready": false, "obstacles": status.obstacles })));
    fs::remove_file(filler).unwrap();
    assert!(rig.status().healthy);
    assert_eq!(verb(&rig, &["status", "--ready"]), (0, "ready\n".to_owned()));
    let (code, said) = verb(&rig, &["status", "--live", "--json"]);
    assert_eq!((code, json_of(&said)), (0, json!({ "live": true, "obstacles": [] })));
    rig.kill();
    for question in ["--live", "--ready"] {
        let (code, said) = verb(&rig, &["status", question]);
        assert!(code == 1 && said.contains("cannot be reached"), "{question}: {code} {said}");
    }
}
