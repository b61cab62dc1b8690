//! The state directory, damaged and refused.

use std::fs;

use shunt_agent_api::ErrorKind;

use crate::rig::Rig;

#[test]
fn files_that_are_no_records_are_set_aside_and_the_others_adopted() {
    let mut rig = Rig::start("auto");
    let (good, torn) = (rig.container(2), rig.container(3));
    rig.attach(&good).unwrap();
    rig.attach(&torn).unwrap();
    rig.kill();
    let directory = rig.state().join("attachments");
    let path = directory.join("net@c3@eth0.json");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    fs::write(directory.join("empty.json"), "").unwrap();
    fs::write(directory.join("future.json"), r#"{"format": 99, "shape": "new"}"#).unwrap();
    fs::write(directory.join("foreign"), "\u{0}\u{1}somebody's").unwrap();
    fs::copy(directory.join("net@c2@eth0.json"), directory.join("net@copy@eth0.json")).unwrap();
    fs::write(directory.join("net@c9@eth0.json.unfinished"), "{").unwrap();

    rig.run("auto");
    assert_eq!(rig.files(directory), ["net@c2@eth0.json"]);
    let aside = rig.files(rig.state().join("quarantine"));
    assert_eq!(aside, ["empty.json", "foreign", "future.json", "net@c3@eth0.json", "net@copy@eth0.json"]);
    let status = rig.status();
    assert_eq!((status.attachments, status.healthy), (1, true));
    assert_eq!(status.warnings.len(), 5, "{:?}", status.warnings);
    rig.check(&good).unwrap();
    // Nothing of the torn one is left, so that it can be attached again.
    rig.attach(&torn).unwrap();
    rig.check(&torn).unwrap();
}

#[test]
fn a_full_disk_refuses_new_attachments_and_keeps_the_old() {
    let mut rig = Rig::bare();
    let state = rig.state();
    fs::create_dir(&state).unwrap();
    let directory = state.to_str().unwrap();
    shunt_lab::run("mount", &["-t", "tmpfs", "-o", "size=64k", "tmpfs", directory]).unwrap();
    rig.run("auto");
    let (old, new) = (rig.container(2), rig.container(3));
    rig.attach(&old).unwrap();
    let filler = state.join("filler");
    fs::write(&filler, vec![1; 1 << 20]).unwrap_err();
    let refusal = rig.attach(&new).unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::State, "{refusal}");
    assert_eq!(rig.files(state.join("attachments")), ["net@c2@eth0.json"]);
    assert_eq!(rig.status().attachments, 1);
    rig.check(&old).unwrap();
    rig.exchange(0, 1, 3);
    fs::remove_file(filler).unwrap();
    rig.attach(&new).unwrap();
}

#[test]
fn a_record_of_an_earlier_boot_means_nothing() {
    let mut rig = Rig::start("auto");
    let port = rig.container(2);
    rig.attach(&port).unwrap();
    rig.kill();
    let path = rig.state().join("attachments/net@c2@eth0.json");
    let mut record: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    record["boot"] = "00000000-0000-0000-0000-000000000000".into();
    fs::write(&path, record.to_string()).unwrap();
    rig.run("auto");
    assert_eq!(rig.status().attachments, 0);
    rig.assert_empty();
}
