//! Packets are watched: `drops --watch` and `capture` tell what becomes of them, and leave nothing behind.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shunt_dataplane::DropReason;
use shunt_dataplane::abi::ABI_VERSION;
use shunt_lab::{Binaries, Protocol, patience};

use crate::restrictions::tap;
use crate::stage::Stage;
use crate::wire::{Wire, arp, frame};

#[path = "watched/captures.rs"]
mod captures;
#[path = "watched/verbs.rs"]
mod verbs;

/// Nobody's address, and one that no station may have.
const NOBODY: [u8; 6] = [2, 0xde, 0xad, 0, 0, 1];
const GROUP: [u8; 6] = [3, 0xde, 0xad, 0, 0, 1];

/// How long programs may take to be replaced.
const PATIENCE: Duration = Duration::from_secs(20);

/// The stage that gives a reason.
fn stage_of(reason: &str) -> &'static str {
    DropReason::ALL.iter().find(|known| known.name() == reason).unwrap().stage().name()
}

/// Ids of the attached programs, by program and interface.
type Ids = BTreeMap<(String, String), u32>;

fn ids(stage: &Stage) -> Ids {
    let programs = stage.node.agent().status().unwrap().programs;
    programs.into_iter().map(|program| ((program.name, program.ifname), program.id)).collect()
}

/// Waits until all programs have other ids, or the ids are these again.
fn wait(stage: &Stage, plain: &Ids, watched: bool) {
    let begun = Instant::now();
    loop {
        let now = ids(stage);
        let is_plain = |(at, id): (&(String, String), &u32)| plain.get(at).is_none_or(|plain| plain == id);
        let count = now.iter().filter(|entry| is_plain(*entry)).count();
        if watched && count == 0 || !watched && count == now.len() {
            return;
        }
        assert!(begun.elapsed() < patience(PATIENCE), "{now:?}, before {plain:?}, watched: {watched}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A verb that watches, ended with this.
struct Watcher(Child);

impl Watcher {
    fn begin(stage: &Stage, arguments: &[&str]) -> Self {
        let mut command = Command::new(Binaries::find().unwrap().agent());
        command.args(arguments).arg("--socket").arg(stage.node.agent().socket());
        Self(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    /// What it has written until its end, each line as JSON, and what it has said.
    fn end(mut self) -> (Vec<Value>, String) {
        let out = BufReader::new(self.0.stdout.take().unwrap());
        let lines = out.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
        let mut said = String::new();
        self.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(self.0.wait().unwrap().success(), "{said}");
        (lines, said)
    }

    fn interrupt(&self) {
        let id = nix::unistd::Pid::from_raw(self.0.id() as i32);
        nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGINT).unwrap();
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _ended = self.0.wait();
    }
}

/// Checked containers, and a tap on each.
fn checked() -> (Stage, Vec<Wire>) {
    let mut stage = Stage::empty();
    stage.network = stage.network.clone().with("macspoofchk", json!(true)).with("ipspoofchk", json!(true));
    stage.add("one");
    stage.add("two");
    let wires: Vec<_> = stage.sandboxes.iter().map(tap).collect();
    wires.iter().for_each(|wire| drop(wire.until_silence()));
    (stage, wires)
}

/// Whether this test has sent a frame.
fn is_ours(frame: &[u8]) -> bool {
    frame[12..14] == [0x88, 0xb5]
}

fn ours(frames: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    frames.into_iter().filter(|frame| is_ours(frame)).collect()
}

#[test]
fn drops_are_told_with_port_program_and_reason_and_are_counted_as_ever() {
    let (mut stage, wires) = checked();
    let plain = ids(&stage);
    let watcher = Watcher::begin(&stage, &["drops", "--watch", "--json", "--count", "4", "--for", "60s"]);
    wait(&stage, &plain, true);
    let [from, to] = [wires[0].mac(), wires[1].mac()];
    let (spoofed, invalid) = (frame(to, NOBODY, "spoofed"), frame(to, GROUP, "invalid"));
    let lying = arp([0xff; 6], from, 1, [10, 77, 0, 200], [10, 77, 0, 201]);
    for frame in [&spoofed, &invalid, &lying, &frame(to, from, "delivered")] {
        wires[0].send(frame);
    }
    // A port that is attached under the watcher.
    stage.add("three");
    let late = tap(&stage.sandboxes[2]);
    late.until_silence();
    late.send(&frame(to, NOBODY, "late"));
    let (told, said) = watcher.end();
    let told_of = |reason: &str, container: &str| {
        let is_it = |told: &&Value| told["reason"] == reason && told["container"] == container;
        told.iter().find(is_it).unwrap_or_else(|| panic!("{reason}: {told:#?} {said}"))
    };
    for (reason, container) in [
        ("source_spoofed", "one"),
        ("source_invalid", "one"),
        ("address_spoofed", "one"),
        ("source_spoofed", "three"),
    ] {
        let told = told_of(reason, container);
        assert_eq!(told["program"], "from_container");
        assert_eq!(told["verdict"], "drop");
        assert_eq!(told["stage"], stage_of(reason));
        assert_eq!(told["ifname"], stage.node.agent().port(container).unwrap().host_ifname.as_str());
        assert_eq!(told["length"], 60);
    }
    wait(&stage, &plain, false);
    for (reason, container, count) in
        [("source_spoofed", "one", 1), ("source_invalid", "one", 1), ("address_spoofed", "one", 1)]
    {
        assert_eq!(crate::restrictions::drops(&stage, container, reason), count, "{reason}");
    }
}

#[test]
fn two_watch_at_a_time_and_what_flows_meanwhile_never_stops() {
    let (stage, wires) = checked();
    let plain = ids(&stage);
    let echo = stage.echo(1, 7100);
    let mut talk = stage.sandboxes[0].talk_to(Protocol::Tcp, &echo).unwrap();
    let first = Watcher::begin(&stage, &["drops", "--watch", "--json", "--count", "2", "--for", "60s"]);
    wait(&stage, &plain, true);
    talk.chat(20, 1200).unwrap();
    let dropping = ids(&stage);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("packets.pcapng");
    let second = Watcher::begin(&stage, &["capture", "-w", file.to_str().unwrap(), "--for", "60s"]);
    wait(&stage, &dropping, true);
    let spoofed = frame(wires[1].mac(), NOBODY, "spoofed");
    wires[0].send(&spoofed);
    talk.chat(20, 1200).unwrap();
    std::thread::sleep(patience(Duration::from_millis(300)));
    second.interrupt();
    second.end();
    let captured = captures::packets(&file);
    assert!(captured.iter().any(|packet| packet.2 == spoofed), "drops are captured, too");
    assert!(captured.len() > 40, "{} packets", captured.len());
    talk.chat(20, 1200).unwrap();
    wires[0].send(&spoofed);
    let (told, _) = first.end();
    assert!(told.iter().all(|told| told["reason"] == "source_spoofed"), "{told:?}");
    wait(&stage, &plain, false);
    talk.chat(20, 1200).unwrap();
}

#[test]
fn a_watcher_that_is_killed_leaves_the_plain_programs_and_so_does_an_agent() {
    let (mut stage, wires) = checked();
    let plain = ids(&stage);
    let watcher = Watcher::begin(&stage, &["drops", "--watch"]);
    wait(&stage, &plain, true);
    drop(watcher);
    wait(&stage, &plain, false);

    let watcher = Watcher::begin(&stage, &["drops", "--watch"]);
    wait(&stage, &plain, true);
    stage.node.agent_mut().kill().unwrap();
    // The programs go on, and nobody hears them.
    let sent = frame(wires[1].mac(), wires[0].mac(), "delivered");
    wires[0].send(&sent);
    assert_eq!(ours(wires[1].until_silence()), [sent]);
    stage.node.restart_agent().unwrap();
    assert_eq!(ids(&stage), plain);
    drop(watcher);
    let version = stage.node.agent().bpffs().join(format!("v{ABI_VERSION}"));
    assert!(!version.join("watch").exists());
    let watcher = Watcher::begin(&stage, &["drops", "--watch", "--json", "--count", "1", "--for", "60s"]);
    wait(&stage, &plain, true);
    assert!(version.join("watch").exists());
    wires[0].send(&frame(wires[1].mac(), NOBODY, "spoofed"));
    assert_eq!(watcher.end().0.len(), 1);
    wait(&stage, &plain, false);
    assert!(!version.join("watch").exists());
}

#[test]
fn a_flood_is_told_at_the_rate_and_no_other_reason_is_hidden_by_it() {
    let (stage, wires) = checked();
    let plain = ids(&stage);
    let watcher = Watcher::begin(&stage, &["drops", "--watch", "--json", "--rate", "50", "--for", "4s"]);
    wait(&stage, &plain, true);
    let (spoofed, invalid) = (frame(wires[1].mac(), NOBODY, "spoofed"), frame(wires[1].mac(), GROUP, "x"));
    for at in 0..30_000 {
        wires[0].send(&spoofed);
        if at == 29_000 {
            wires[0].send(&invalid);
        }
    }
    let (told, said) = watcher.end();
    let count = |reason: &str| told.iter().filter(|told| told["reason"] == reason).count();
    let cpus = std::thread::available_parallelism().unwrap().get();
    assert!((1..=50 * cpus * 5).contains(&count("source_spoofed")), "{}", count("source_spoofed"));
    assert_eq!(count("source_invalid"), 1);
    let left_out: usize = said.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(left_out + count("source_spoofed"), 30_000, "{said}");
    wait(&stage, &plain, false);
    assert_eq!(crate::restrictions::drops(&stage, "one", "source_spoofed"), 30_000);
}

#[test]
fn filters_of_clsact_are_replaced_in_place() {
    let mut stage = Stage::empty_with(&["--attach", "clsact"]);
    stage.network = stage.network.clone().with("macspoofchk", json!(true));
    stage.add("one");
    stage.add("two");
    let plain = ids(&stage);
    let watcher = Watcher::begin(&stage, &["drops", "--watch", "--json", "--count", "1", "--for", "60s"]);
    wait(&stage, &plain, true);
    stage.assert_talk(0, 1);
    let wire = tap(&stage.sandboxes[0]);
    wire.send(&frame([2, 0, 0, 0, 0, 9], NOBODY, "spoofed"));
    assert_eq!(watcher.end().0[0]["reason"], "source_spoofed");
    wait(&stage, &plain, false);
    stage.assert_talk(0, 1);
}
