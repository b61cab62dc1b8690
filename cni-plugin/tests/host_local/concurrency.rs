//! Many at once, ours and the reference plugin's processes mixed.

use std::{
    collections::HashSet,
    fs::File,
    sync::{Barrier, mpsc::channel},
    thread::{self, ScopedJoinHandle},
    time::Duration,
};

use serde_json::json;

use crate::{
    network::{Network, text},
    reference,
};

const OURS: usize = 160;
const THEIRS: usize = 40;

/// Runs all of them at the same time; every fifth is the reference plugin's.
fn all_at_once<T: Send>(ours: impl Fn(&str) -> T + Sync, theirs: impl Fn(&str) -> T + Sync) -> Vec<T> {
    let start = Barrier::new(OURS + THEIRS);
    thread::scope(|scope| {
        let run = |index: usize| {
            let (start, ours, theirs) = (&start, &ours, &theirs);
            scope.spawn(move || {
                let container = format!("c{index}");
                start.wait();
                if index.is_multiple_of(5) { theirs(&container) } else { ours(&container) }
            })
        };
        let threads: Vec<ScopedJoinHandle<'_, T>> = (0..OURS + THEIRS).map(run).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn two_hundred_parallel_adds_give_two_hundred_different_addresses_and_as_many_dels_leave_none() {
    let network = Network::new(json!({"ranges": [[{"subnet": "10.0.0.0/24"}], [{"subnet": "fd00::/64"}]]}));
    let answers = all_at_once(
        |container| text(&network.add(container, "eth0").unwrap()),
        |container| reference::run(&network, "ADD", container, "eth0", None).unwrap(),
    );
    let different: HashSet<String> = answers.into_iter().flatten().collect();
    assert_eq!(different.len(), 2 * (OURS + THEIRS));
    assert_eq!(network.held().len(), 2 * (OURS + THEIRS));

    all_at_once(
        |container| network.del(container, "eth0").unwrap(),
        |container| assert_eq!(reference::run(&network, "DEL", container, "eth0", None), Ok(vec![])),
    );
    assert_eq!(network.held().len(), 0);
}

#[test]
fn too_many_parallel_adds_fill_the_range_exactly() {
    let network = Network::new(json!({"subnet": "10.0.0.0/26"}));
    let answers = all_at_once(
        |container| network.add(container, "eth0").map(|allocation| text(&allocation)).ok(),
        |container| reference::run(&network, "ADD", container, "eth0", None).ok(),
    );
    let given: Vec<String> = answers.into_iter().flatten().flatten().collect();
    assert_eq!(given.len(), 61);
    assert_eq!(given.into_iter().collect::<HashSet<_>>().len(), 61);
}

#[test]
fn of_parallel_adds_of_one_attachment_exactly_one_succeeds() {
    let network = Network::new(json!({"subnet": "10.0.0.0/24"}));
    let answers = all_at_once(
        |_| network.add("c1", "eth0").is_ok(),
        |_| reference::run(&network, "ADD", "c1", "eth0", None).is_ok(),
    );
    assert_eq!(answers.into_iter().filter(|succeeded| *succeeded).count(), 1);
    assert_eq!(network.held().len(), 1);
}

#[test]
fn every_verb_waits_for_the_lock_that_the_reference_plugin_takes() {
    let network = Network::new(json!({"subnet": "10.0.0.0/24"}));
    network.add("c1", "eth0").unwrap();
    let verbs: [&(dyn Fn() + Sync); 4] = [
        &|| drop(network.add("c2", "eth0").unwrap()),
        &|| network.check("c1", "eth0", &[]).unwrap(),
        &|| network.del("c1", "eth0").unwrap(),
        &|| network.gc(&[("c2", "eth0")]).unwrap(),
    ];
    for verb in verbs {
        let lock = File::open(network.file("lock")).unwrap();
        lock.lock().unwrap();
        let (done, finished) = channel();
        thread::scope(|scope| {
            scope.spawn(move || {
                verb();
                done.send(()).unwrap();
            });
            let early = finished.recv_timeout(Duration::from_millis(50));
            lock.unlock().unwrap();
            assert!(early.is_err(), "did not wait");
            finished.recv_timeout(Duration::from_secs(10)).unwrap();
        });
    }
}
