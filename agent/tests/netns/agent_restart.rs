//! A dead agent costs nothing, and a new one takes up where it was.

use std::collections::BTreeSet;
use std::fs;
use std::net::IpAddr;

use serde_json::Value;
use shunt_lab::{Agent, Protocol};

use crate::stage::Stage;

/// Name, interface and id of every attached program.
fn programs(agent: &Agent) -> BTreeSet<(String, String, u32)> {
    let programs = agent.status().unwrap().programs;
    programs.into_iter().map(|program| (program.name, program.ifname, program.id)).collect()
}

#[test]
fn old_and_new_connections_go_on_while_the_agent_is_dead() {
    let mut stage = Stage::set();
    let echo = stage.echo(1, 7000);
    let mut tcp = stage.sandboxes[0].talk_to(Protocol::Tcp, &echo).unwrap();
    let mut udp = stage.sandboxes[2].talk_to(Protocol::Udp, &echo).unwrap();
    tcp.chat(20, 1000).unwrap();
    udp.chat(20, 1000).unwrap();
    stage.node.agent_mut().kill().unwrap();
    tcp.chat(100, 1000).unwrap();
    udp.chat(100, 1000).unwrap();
    stage.assert_talk(0, 2);
    stage.assert_talk(2, 1);
    stage.node.restart_agent().unwrap();
    tcp.chat(100, 1000).unwrap();
    udp.chat(100, 1000).unwrap();
}

#[test]
fn a_new_agent_adopts_programs_attachments_and_counters() {
    let mut stage = Stage::set();
    stage.assert_talk(0, 1);
    let before = programs(stage.node.agent());
    let counted = stage.node.agent().port("one").unwrap().from;
    assert!(!before.is_empty() && counted.fast > 0, "{before:?} {counted:?}");

    stage.node.agent_mut().kill().unwrap();
    stage.assert_talk(0, 1);
    stage.node.restart_agent().unwrap();

    let agent = stage.node.agent();
    assert_eq!(programs(agent), before);
    assert_eq!(agent.status().unwrap().attachments, 3);
    let now = agent.port("one").unwrap().from;
    // What was counted while nobody looked is there too.
    assert!(now.fast >= counted.fast + 40, "{counted:?} became {now:?}");
}

#[test]
fn an_agent_that_is_asked_to_end_leaves_the_traffic_alone() {
    let mut stage = Stage::set();
    let echo = stage.echo(1, 7000);
    let mut tcp = stage.sandboxes[0].talk_to(Protocol::Tcp, &echo).unwrap();
    tcp.chat(20, 1000).unwrap();
    stage.node.agent_mut().terminate().unwrap();
    tcp.chat(20, 1000).unwrap();
    stage.assert_talk(1, 2);
}

#[test]
fn containers_come_and_go_after_a_restart_as_before_it() {
    let mut stage = Stage::set();
    stage.node.agent_mut().kill().unwrap();
    stage.node.restart_agent().unwrap();
    stage.add("four");
    stage.assert_talk(3, 0);
    stage.assert_talk(0, 3);
    for sandbox in &stage.sandboxes {
        sandbox.delete(&stage.node, &stage.network).unwrap();
    }
    assert_eq!(stage.left(), Vec::<String>::new());
    assert_eq!(stage.node.agent().status().unwrap().attachments, 0);
}

#[test]
fn a_new_agent_forgets_the_containers_that_were_deleted_while_it_was_dead() {
    let mut stage = Stage::set();
    stage.node.agent_mut().kill().unwrap();
    for sandbox in &stage.sandboxes {
        sandbox.delete(&stage.node, &stage.network).unwrap();
    }
    stage.node.restart_agent().unwrap();
    assert_eq!(stage.node.agent().status().unwrap().attachments, 0);
    assert_eq!(stage.left(), Vec::<String>::new());
}

#[test]
fn a_machine_that_is_started_again_has_no_addresses_of_containers_that_are_gone() {
    let mut stage = Stage::set();
    let leases = stage.node.leases().join("pods");
    let files = || {
        let names =
            fs::read_dir(&leases).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.parse::<IpAddr>().is_ok()).count()
    };
    assert_eq!(files(), 6, "two families, three containers");
    stage.node.agent_mut().kill().unwrap();
    // Of the containers nothing is left but what was written down.
    stage.sandboxes.clear();
    let state = stage.node.agent().state().join("attachments");
    for file in fs::read_dir(&state).unwrap() {
        let path = file.unwrap().path();
        let mut record: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(record["port"]["lease_dir"].as_str(), stage.node.leases().to_str());
        record["boot"] = "00000000-0000-0000-0000-000000000000".into();
        fs::write(&path, record.to_string()).unwrap();
    }
    stage.node.restart_agent().unwrap();
    assert_eq!(files(), 0);
    assert_eq!(stage.left(), Vec::<String>::new());
    stage.add("four");
    assert_eq!(files(), 2);
}
