//! Which processors the agent leaves to its clients.

use std::hint::spin_loop;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use nix::unistd::Pid;
use shunt_agent_api::{Client, Request};
use shunt_lab::load::{cpus, cpus_of, pin};

use crate::events::Subscriber;
use crate::rig::{Rig, eventually};

/// The threads that work when somebody asks.
const PLACED: [&str; 2] = ["shunt-agent", "agent"];

/// The agent's thread of this name.
fn thread(rig: &Rig, name: &str) -> Pid {
    let tasks = Path::new("/proc").join(rig.id().to_string()).join("task");
    let is_it =
        |task: &Path| std::fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim() == name);
    let task = std::fs::read_dir(tasks)
        .unwrap()
        .find_map(|task| Some(task.unwrap().path()).filter(|task| is_it(task)));
    let thread = task.unwrap_or_else(|| panic!("there is no thread {name}"));
    Pid::from_raw(thread.file_name().unwrap().to_str().unwrap().parse().unwrap())
}

/// Where the thread of this name may run.
fn processors(rig: &Rig, name: &str) -> Vec<usize> {
    cpus_of(thread(rig, name)).unwrap()
}

/// Connects, and asks nothing.
fn client(rig: &Rig) -> Client {
    Client::connect(&rig.socket()).unwrap()
}

#[test]
fn an_only_client_has_a_processor_to_itself_and_several_have_none() {
    let rig = Rig::start("auto");
    let everywhere = processors(&rig, "acceptor");
    let is_free = || PLACED.iter().all(|thread| processors(&rig, thread) == everywhere);
    eventually("whoever waited for the agent's start has left", is_free);
    if everywhere.len() == 1 {
        return;
    }
    let is_kept_off = || {
        let left = processors(&rig, PLACED[0]);
        left.len() + 1 == everywhere.len() && PLACED.iter().all(|thread| processors(&rig, thread) == left)
    };

    let one = client(&rig);
    eventually("the agent is off one client's processor", is_kept_off);
    let another = client(&rig);
    eventually("the agent is everywhere with two clients", is_free);
    drop((one, another));
    // They may leave one after the other, and after the next comes.
    eventually("a client that is alone again has its processor", || {
        let _client = client(&rig);
        (0..20).any(|_| {
            thread::sleep(Duration::from_millis(5));
            is_kept_off()
        })
    });
    eventually("the agent is everywhere without clients", is_free);
    let _subscriber = Subscriber::new(&rig);
    eventually("the agent is everywhere with one who only listens", is_free);
    let _one = client(&rig);
    eventually("who only listens does not count", is_kept_off);
}

/// Whoever accepts wakes up beside a client only where that leaves the processor to it; beside one that shares its processor, elsewhere.
#[test]
fn the_processor_that_is_left_is_the_one_that_the_client_names() {
    let rig = Rig::start("auto");
    let everywhere = processors(&rig, "acceptor");
    if everywhere.len() == 1 {
        return;
    }
    let is_at = |left: &[usize]| PLACED.iter().all(|thread| processors(&rig, thread) == left);
    eventually("whoever waited for the agent's start has left", || is_at(&everywhere));
    for processor in [everywhere[0], everywhere[1]].repeat(3) {
        let left: Vec<_> = everywhere.iter().copied().filter(|other| *other != processor).collect();
        let is_over = AtomicBool::new(false);
        let connect = || {
            pin(processor).unwrap();
            thread::scope(|scope| {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        spin_loop();
                    }
                });
                let client = client(&rig);
                is_over.store(true, Ordering::Relaxed);
                client
            })
        };
        let client = thread::scope(|scope| scope.spawn(connect).join().unwrap());
        eventually("the agent is off the client's processor", || is_at(&left));
        drop(client);
        eventually("the agent is everywhere", || is_at(&everywhere));
    }
    let _unnamed = UnixStream::connect(rig.socket()).unwrap();
    thread::sleep(Duration::from_millis(100));
    assert!(is_at(&everywhere), "nobody knows where this client is");
}

#[test]
fn an_agent_that_has_one_processor_keeps_to_it() {
    let only = cpus().unwrap()[0];
    let mut rig = Rig::bare();
    // What a thread starts may run where the thread may.
    let start = || {
        pin(only).unwrap();
        rig.run("auto");
    };
    thread::scope(|scope| scope.spawn(start).join().unwrap());

    let _client = client(&rig);
    rig.ask(Request::Status).unwrap();
    for thread in PLACED.iter().chain(&["acceptor", "monitor"]) {
        assert_eq!(processors(&rig, thread), [only], "{thread}");
    }
}
