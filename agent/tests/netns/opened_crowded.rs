//! Host ports that the kernel opens, and more of connection tracking than one answer of ctnetlink has room for: all that lasts is carried, and nothing is carried
//! longer than rules let it.

use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use shunt_lab::{Conversation, Protocol, patience};

use crate::entries::load;
use crate::heeded::nft;
use crate::opened::{NODE, NOTICED, Opened};
use crate::opened_carried::{carried, set};

/// More connections than the agent asks for at a time (128), and than it lists at a time (64).
const MANY: usize = 300;

/// Threads that talk.
const TALKERS: usize = 6;

/// How long a connection may go on past a rule that refuses it: a lease, and as long as the agent takes to hear of the rule.
const ENDED: Duration = Duration::from_secs(2);

/// Entries that somebody else has, and events of theirs.
const ENTRIES: u32 = 30_000;

/// Something is said by each of them.
fn go_on(talks: &mut [Conversation]) {
    scope(|threads| {
        for some in talks.chunks_mut(MANY.div_ceil(TALKERS)) {
            threads.spawn(move || some.iter_mut().for_each(|talk| talk.chat(2, 100).unwrap()));
        }
    });
}

#[test]
fn many_connections_at_once_are_carried_and_end_with_a_rule() {
    let (opened, _echoes) = set();
    let open = |at: usize| opened.talk(&opened.outside, Protocol::Udp, NODE[at % 2]).unwrap();
    let mut talks: Vec<_> = (0..MANY).map(open).collect();
    let begun = Instant::now();
    while carried(&opened) < MANY {
        assert!(
            begun.elapsed() < patience(4 * NOTICED),
            "{} of {MANY} are carried\n{}",
            carried(&opened),
            opened.stage.node.agent().log_tail()
        );
        go_on(&mut talks);
    }
    nft(&opened.stage, "insert rule inet engine forward udp dport 7000 drop");
    sleep(patience(ENDED));
    scope(|threads| {
        for talk in talks.iter_mut().step_by(MANY / 10) {
            threads.spawn(move || assert!(talk.chat(1, 100).is_err(), "it goes on past the rule"));
        }
    });
}

/// Somebody who listens to connection tracking and reads nothing: the kernel has no room for what it would tell them.
struct Listener(Child);

impl Listener {
    fn start(opened: &Opened) -> Self {
        let log = File::create(opened.stage.lab.root().join("events")).unwrap();
        let listen = || Command::new("conntrack").arg("-E").stdout(log).stderr(Stdio::null()).spawn();
        let listener = Self(opened.stage.node.namespace().enter(listen).unwrap().unwrap());
        sleep(patience(Duration::from_millis(200)));
        kill(Pid::from_raw(listener.0.id() as i32), Signal::SIGSTOP).unwrap();
        listener
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn events_that_nobody_reads_and_others_entries_cost_no_connection() {
    let (mut opened, echoes) = set();
    let _listener = Listener::start(&opened);
    let mut talks: Vec<_> = NODE.map(|to| opened.talk(&opened.outside, Protocol::Tcp, to).unwrap()).into();
    scope(|threads| {
        let file = opened.stage.lab.root().join("entries");
        let node = opened.stage.node.namespace();
        let storm = threads.spawn(move || load(node, &file, ENTRIES));
        let begun = Instant::now();
        while !storm.is_finished() || carried(&opened) < talks.len() {
            assert!(begun.elapsed() < patience(6 * NOTICED), "{}", opened.stage.node.agent().log_tail());
            talks.iter_mut().for_each(|talk| talk.chat(5, 100).unwrap());
        }
    });
    // Among so many entries those of a container that goes are found.
    let gone = opened.stage.sandboxes.pop().expect("a container");
    gone.delete(&opened.stage.node, &opened.published).unwrap();
    drop(echoes);
    talks.iter_mut().for_each(|talk| assert!(talk.chat(1, 100).is_err()));
    opened.until("its entries are gone", || carried(&opened) == 0);
}
