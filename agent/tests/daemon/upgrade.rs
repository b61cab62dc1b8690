//! Agents of other versions: an older one's containers are taken over in place, a newer one's are left to it.
//!
//! The other version is this one under another number: what is pinned in `v2` is moved to `v0` or `v9` while no agent runs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use shunt_agent_api::{PortMapping, Protocol, Restrictions};
use shunt_dataplane::abi::translation::{Shown, Translation, TupleKey};
use shunt_lab::patience;
use zerocopy::IntoBytes as _;

use crate::kernel;
use crate::rig::Rig;

/// Gives what is pinned another version.
fn pretend(rig: &Rig, from: &str, to: &str) {
    let pins = rig.lab.bpf_directory("agent");
    fs::rename(pins.join(from), pins.join(to)).unwrap();
}

/// Exit code and report of `shunt-agent upgrade --check`.
fn check(rig: &Rig) -> (i32, Value) {
    check_with(rig, &[])
}

fn check_with(rig: &Rig, arguments: &[&str]) -> (i32, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shunt-agent"));
    command.args(["upgrade", "--check", "--json", "--state-dir"]).arg(rig.state()).args(arguments);
    let output = command.arg("--bpffs").arg(rig.lab.bpf_directory("agent")).output().unwrap();
    (output.status.code().unwrap(), serde_json::from_slice(&output.stdout).unwrap())
}

fn programs(rig: &Rig) -> Vec<u32> {
    let ingress = aya::programs::TcAttachType::Ingress;
    ["veth2", "veth3"].into_iter().flat_map(|link| kernel::tcx(rig, link, ingress)).collect()
}

#[test]
fn an_older_agents_containers_get_new_programs_and_maps_in_place() {
    let mut rig = Rig::start("tcx");
    let (open, mut restricted) = (rig.container(2), rig.container(3));
    restricted.restrictions = Restrictions { mac_check: true, ..Restrictions::default() };
    rig.attach(&open).unwrap();
    rig.attach(&restricted).unwrap();
    let before = programs(&rig);
    rig.kill();
    pretend(&rig, "v2", "v0");
    let (code, report) = check(&rig);
    assert_eq!((code, &report["older"], &report["attachments"]), (0, &Value::from([0]), &Value::from(2)));
    assert!(report["kept"].as_array().unwrap().contains(&"FLOWS".into()), "{report}");
    assert!(report["rebuilt"].as_array().unwrap().contains(&"PORTS".into()), "{report}");
    // The older agent would refuse what this one leaves (`a_newer_agents_containers_are_left_to_it`), and that is said before.
    assert!(report["lasting"][0].as_str().unwrap().contains("an agent of ABI 0 refuses"), "{report}");
    assert_eq!(check_with(&rig, &["--undoable"]).0, 3);

    // Nothing serves it but the older programs with their maps.
    rig.exchange(0, 1, 3);
    rig.run("tcx");
    let after = programs(&rig);
    // The restricted port has a guard, too.
    assert_eq!((before.len(), after.len()), (3, 3), "none is there twice: {after:?}");
    assert!(after.iter().all(|id| !before.contains(id)), "{before:?} {after:?}");
    assert!(!rig.lab.bpf_directory("agent").join("v0").exists(), "nothing of the older agent is left");
    rig.check(&open).unwrap();
    // The kernel's own port is locked by the plugin, which has no part in this: by the agent's look at everything, each second.
    let begun = Instant::now();
    while let Err(error) = rig.check(&restricted) {
        assert!(begun.elapsed() < patience(Duration::from_secs(10)), "{error:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
    rig.exchange(0, 1, 3);
    assert!(!rig.log().contains("attached again"), "links were replaced, not made: {}", rig.log());
    // From here on it can be undone.
    let (code, report) = check_with(&rig, &["--undoable"]);
    assert_eq!((code, &report["lasting"]), (0, &Value::Array(Vec::new())), "{report}");
    rig.detach(&open).unwrap();
    rig.detach(&restricted).unwrap();
    rig.assert_empty();
}

#[test]
fn an_upgrade_that_is_killed_in_the_middle_is_finished_by_the_next_start() {
    let mut rig = Rig::start("tcx");
    let (one, two) = (rig.container(2), rig.container(3));
    rig.attach(&one).unwrap();
    rig.attach(&two).unwrap();
    rig.kill();
    pretend(&rig, "v2", "v0");
    // As a start leaves it that has made its maps and has moved one link of five.
    let (old, new) = (rig.lab.bpf_directory("agent").join("v0"), rig.pin("links"));
    fs::create_dir_all(&new).unwrap();
    let link = format!("to_container-{}", one.host.index);
    fs::rename(old.join("links").join(&link), new.join(&link)).unwrap();
    rig.exchange(0, 1, 3);
    rig.run("tcx");
    rig.check(&one).unwrap();
    rig.check(&two).unwrap();
    rig.exchange(0, 1, 3);
    assert!(!old.exists() && rig.files(new).len() == 5);
}

#[test]
fn a_newer_agents_containers_are_left_to_it_and_the_way_back_is_named() {
    let mut rig = Rig::start("tcx");
    let (one, two) = (rig.container(2), rig.container(3));
    rig.attach(&one).unwrap();
    rig.attach(&two).unwrap();
    let before = programs(&rig);
    rig.kill();
    pretend(&rig, "v2", "v9");
    let (code, report) = check(&rig);
    assert_eq!((code, &report["possible"]), (3, &Value::from(false)), "{report}");
    assert_eq!(rig.run_to_end(rig.command("tcx")), 1);
    let log = rig.log();
    for words in ["speaks ABI 9", "this one speaks 2", "The way back", "start that agent again"] {
        assert!(log.contains(words), "{words}: {log}");
    }
    assert_eq!(programs(&rig), before);
    rig.exchange(0, 1, 3);
    // It does start again, and nothing has been lost. The rig looks for failed starts in the log.
    fs::remove_file(rig.lab.root().join("log")).unwrap();
    pretend(&rig, "v9", "v2");
    assert_eq!(check(&rig).0, 0);
    rig.run("tcx");
    assert_eq!(programs(&rig), before);
    rig.check(&one).unwrap();
}

#[test]
fn state_files_of_a_newer_agent_are_a_reason_not_to_take_over() {
    let mut rig = Rig::start("auto");
    let port = rig.container(2);
    rig.attach(&port).unwrap();
    fs::write(rig.state().join("attachments/future.json"), r#"{"format": 99, "shape": "new"}"#).unwrap();
    let (code, report) = check(&rig);
    let reason = report["reasons"][0].as_str().unwrap_or_default();
    assert!(code == 3 && reason.contains("format 99"), "{report}");
    assert!(rig.state().join("attachments/future.json").exists(), "a check touches nothing");
    assert_eq!(rig.status().attachments, 1);
}

/// A connection's entry as ABI 1 had it: today's without its end.
const EARLIER: usize = 88;

#[test]
fn connections_of_an_earlier_layout_go_on() {
    let mut rig = Rig::start("tcx");
    let mut port = rig.container(2);
    let (protocol, host_port, container_port) = (Protocol::Udp, 8053, 53);
    port.mappings = vec![PortMapping {
        protocol,
        host_ip: None,
        host_port,
        container_port,
        masquerade: false,
        keeps_source: false,
    }];
    rig.attach(&port).unwrap();
    kernel::add_connections(&rig, &port, 3);
    let before = kernel::flows(&rig);
    assert_eq!(before.len(), 6);
    rig.kill();
    pretend(&rig, "v2", "v1");
    let pin = rig.lab.bpf_directory("agent").join("v1/maps/FLOWS");
    fs::remove_file(&pin).unwrap();
    // The first has ended, as ABI 1 had it.
    let ended = before.keys().next().copied().unwrap();
    let halves = [ended, before[&ended].becomes.reversed(before[&ended].becomes.domain)];
    let mut earlier = before.clone();
    for half in halves {
        earlier.get_mut(&half).unwrap().shown |= Shown::FINISHED.0;
    }
    make_earlier(&pin, &earlier);
    let (code, report) = check(&rig);
    assert!(code == 0 && report["kept"].as_array().unwrap().contains(&"FLOWS".into()), "{report}");
    rig.run("tcx");
    let after = kernel::flows(&rig);
    for (key, flow) in &earlier {
        let agreed = if halves.contains(key) { Shown::AGREED.0 } else { 0 };
        assert_eq!(after[key], Translation { shown: flow.shown | agreed, ..*flow });
    }
    assert_eq!((after.len(), kernel::connections(&rig)), (6, 3));
    assert!(!rig.lab.bpf_directory("agent").join("v1").exists(), "nothing of the older agent is left");
}

/// Makes a map of the earlier layout with these entries.
fn make_earlier(pin: &Path, flows: &BTreeMap<TupleKey, Translation>) {
    let value = EARLIER.to_string();
    let (key, entries) = (size_of::<TupleKey>().to_string(), "1024");
    let shape = ["type", "lru_hash", "key", &key, "value", &value, "entries", entries, "name", "FLOWS"];
    shunt_lab::run("bpftool", &[&["map", "create", pin.to_str().unwrap()], &shape[..]].concat()).unwrap();
    let map = aya::maps::Map::LruHashMap(aya::maps::MapData::from_pin(pin).unwrap());
    let mut map = aya::maps::HashMap::<_, TupleKey, [u8; EARLIER]>::try_from(map).unwrap();
    for (key, flow) in flows {
        map.insert(key, <[u8; EARLIER]>::try_from(&flow.as_bytes()[..EARLIER]).unwrap(), 0).unwrap();
    }
}
