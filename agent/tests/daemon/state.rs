//! The state directory, damaged and refused.

use std::fs;

use shunt_agent_api::{ErrorKind, Request};

use crate::rig::{Rig, eventually};

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
    // A newer agent may come back, and finds its own.
    assert_eq!(rig.files(directory.clone()), ["future.json", "net@c2@eth0.json"]);
    let aside = rig.files(rig.state().join("quarantine"));
    assert_eq!(aside, ["empty.json", "foreign", "net@c3@eth0.json", "net@copy@eth0.json"]);
    let status = rig.status();
    assert_eq!((status.attachments, status.healthy), (1, false));
    assert_eq!(status.warnings.len(), 5, "{:?}", status.warnings);
    // The only port that is without its record.
    assert!(status.reasons.len() == 1 && status.reasons[0].starts_with("veth3 "), "{:?}", status.reasons);
    rig.check(&good).unwrap();
    // What is left of the torn one does not keep it from being attached again.
    rig.attach(&torn).unwrap();
    rig.check(&torn).unwrap();
    rig.check(&good).unwrap();
    assert!(rig.status().healthy, "{:?}", rig.status());
    rig.exchange(0, 1, 5);
}

/// The link goes with a DEL, or by itself, and everything with it.
#[test]
fn of_a_port_without_its_record_nothing_is_left_once_its_link_is_gone() {
    for mode in ["tcx", "clsact"] {
        let mut rig = Rig::start(mode);
        let ports = [rig.container(2), rig.container(3)];
        ports.iter().for_each(|port| drop(rig.attach(port).unwrap()));
        rig.kill();
        fs::remove_dir_all(rig.state()).unwrap();
        rig.run(mode);
        let status = rig.status();
        assert_eq!((status.attachments, status.reasons.len()), (0, 2), "{mode}: {status:?}");
        let [deleted, dead] = &ports;
        let request = Request::Detach { key: deleted.key.clone(), link: Some(deleted.host.clone()) };
        rig.ask(request).unwrap();
        eventually("one is left", || rig.status().reasons.len() == 1);
        rig.ip(&["link", "delete", &dead.host.name]);
        eventually("none is left", || rig.status().healthy);
        rig.assert_empty();
    }
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
    // With its link there it would be a damaged record.
    rig.ip(&["link", "delete", &port.host.name]);
    rig.run("auto");
    assert_eq!(rig.status().attachments, 0);
    rig.assert_empty();
}

/// Whoever opens a pipe for reading waits for a writer.
#[test]
fn a_pipe_or_a_device_among_the_records_keeps_no_agent_from_starting_and_is_named() {
    let mut rig = Rig::start("auto");
    let (good, piped) = (rig.container(2), rig.container(3));
    for port in [&good, &piped] {
        rig.attach(port).unwrap();
    }
    rig.kill();
    let directory = rig.state().join("attachments");
    let pipe = directory.join("net@c3@eth0.json");
    fs::remove_file(&pipe).unwrap();
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    std::os::unix::fs::symlink("/dev/zero", directory.join("net@c9@eth0.json")).unwrap();
    rig.run("auto");
    let status = rig.status();
    assert_eq!((status.attachments, status.healthy), (1, false));
    assert!(status.reasons.len() == 1 && status.reasons[0].starts_with("veth3 "), "{:?}", status.reasons);
    for name in ["net@c3@eth0.json", "net@c9@eth0.json"] {
        let is_it = |warning: &String| warning.contains(name) && warning.contains("no regular file");
        assert!(status.warnings.iter().any(is_it), "{name}: {:?}", status.warnings);
    }
    rig.check(&good).unwrap();
    rig.attach(&piped).unwrap();
    let reasons = rig.status().reasons;
    assert_eq!(reasons, [""; 0]);
}
