//! How `drops --watch` and `capture` end: by an agent that ends, and by signals where nobody answers.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use shunt_lab::{Binaries, patience};

use super::captures::packets;
use super::{NOBODY, PATIENCE, Watcher, checked, ids, wait};
use crate::restrictions::tap;
use crate::wire::frame;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);

#[test]
fn a_capture_says_what_it_has_when_the_agent_ends() {
    let (mut stage, wires) = checked();
    let plain = ids(&stage);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("packets.pcapng");
    let mut watcher =
        Watcher::begin(&stage, &["capture", "-w", file.to_str().unwrap(), "--port", "two", "--for", "60s"]);
    wait(&stage, &plain, true);
    let sent = frame(wires[1].mac(), wires[0].mac(), "delivered");
    wires[0].send(&sent);
    let begun = Instant::now();
    while !fs::read(&file).unwrap().windows(sent.len()).any(|bytes| bytes == sent) {
        assert!(begun.elapsed() < patience(PATIENCE), "it is not captured");
        sleep(LOOK);
    }
    stage.node.agent_mut().kill().unwrap();
    let mut said = String::new();
    watcher.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(watcher.0.wait().unwrap().code(), Some(1), "{said}");
    assert!(said.contains(" packets captured; "), "{said}");
    assert!(packets(&file).iter().any(|packet| packet.2 == sent));
}

#[test]
fn a_port_that_is_not_there_is_named_and_so_is_its_coming() {
    let (mut stage, wires) = checked();
    let plain = ids(&stage);
    let arguments = ["drops", "--watch", "--json", "--port", "three", "--count", "1", "--for", "60s"];
    let mut watcher = Watcher::begin(&stage, &arguments);
    let mut said = BufReader::new(watcher.0.stderr.take().unwrap()).lines().map(Result::unwrap);
    wait(&stage, &plain, true);
    assert_eq!(said.next().unwrap(), "no port is three now: its packets are told once there is one");
    stage.add("three");
    assert_eq!(said.next().unwrap(), "there is a port three now");
    let late = tap(&stage.sandboxes[2]);
    late.until_silence();
    late.send(&frame(wires[1].mac(), NOBODY, "late"));
    let status = watcher.0.wait().unwrap();
    assert!(status.success(), "{:?}", said.collect::<Vec<_>>());
}

#[test]
fn a_reason_that_no_packet_can_have_is_wrong_usage_and_no_agent_is_asked() {
    for (verb, wanted) in [
        (&["drops", "--watch", "--reason", "source_spofed"][..], "source_spoofed"),
        (&["drops", "--watch", "--reason", "to_host"][..], "--fate passed"),
        (&["flows", "--proto", "tpc"][..], "tcp"),
        (&["flows", "--state", "established!"][..], "established"),
    ] {
        let mut command = Command::new(Binaries::find().unwrap().agent());
        let done = command.args(verb).args(["--socket", "/nowhere/agent.sock"]).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code() == Some(2) && said.contains(wanted), "{verb:?}: {said}");
    }
}

/// The code that the verb ends with, where an agent never answers and a signal comes, once or again and again.
fn code_by(signal: Signal, again: bool) -> Option<i32> {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("agent.sock");
    let mute = UnixListener::bind(&socket).unwrap();
    let mut command = Command::new(Binaries::find().unwrap().agent());
    command.args(["drops", "--watch", "--socket"]).arg(&socket).stdout(Stdio::null()).stderr(Stdio::null());
    let mut watcher = Watcher(command.spawn().unwrap());
    // The signals are taken before that.
    let _asked = mute.accept().unwrap();
    let id = Pid::from_raw(watcher.0.id() as i32);
    kill(id, signal).unwrap();
    let begun = Instant::now();
    loop {
        sleep(LOOK);
        if let Some(status) = watcher.0.try_wait().unwrap() {
            return status.code();
        }
        assert!(begun.elapsed() < patience(PATIENCE), "it goes on");
        if again {
            kill(id, signal).unwrap();
        }
    }
}

#[test]
fn a_verb_that_hangs_ends_by_a_second_interrupt_and_by_one_termination() {
    assert_eq!(code_by(Signal::SIGINT, true), Some(130));
    assert_eq!(code_by(Signal::SIGTERM, false), Some(143));
}
