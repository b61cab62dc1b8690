//! Nobody but root can keep a call waiting, no wait is without an end, and who is waited for is named.

use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::runtime::Runtime;

/// The lock of the bridge that the tests' networks have.
fn lock_of_bridge(runtime: &Runtime) -> PathBuf {
    runtime.agent.socket().with_added_extension("locks").join("br0")
}

/// A network on another bridge.
fn another(runtime: &Runtime) -> Value {
    let mut network = runtime.network("other");
    network["bridge"] = json!("br1");
    network["ipam"]["ranges"] = json!([[{ "subnet": "10.78.0.0/24" }]]);
    network
}

/// Fails with code 11, names this process, and takes no longer than twice `patience`.
#[track_caller]
fn expect_held(runtime: &Runtime, verb: &str, network: &Value, patience: Duration) {
    let begun = Instant::now();
    let (code, text) = runtime.call(verb, "c1", network).error();
    let took = begun.elapsed();
    assert!(code == 11 && text.contains(&format!("process {}", std::process::id())), "{code} {text}");
    assert!(took >= patience && took < patience * 2, "{took:?}");
}

#[test]
fn a_lock_on_the_namespaces_file_which_any_process_can_take_stops_no_call() {
    let runtime = Runtime::new();
    let container = runtime.container("c1");
    let files = [runtime.node.path(), container.path()].map(|path| File::open(path).unwrap());
    for file in &files {
        file.lock().unwrap();
    }
    let network = runtime.network("n1");
    let begun = Instant::now();
    for verb in ["INIT", "ADD", "DEL", "DEINIT"] {
        runtime.call(verb, "c1", &network).ok();
    }
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
}

#[test]
fn a_bridge_that_is_held_is_waited_for_a_while_and_its_holder_is_named() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let network = runtime.network("n1");
    runtime.call("INIT", "c1", &network).ok();
    let before = runtime.inventory();
    let held = File::open(lock_of_bridge(&runtime)).unwrap();
    held.lock().unwrap();
    expect_held(&runtime, "ADD", &network, Duration::from_secs(5));
    runtime.assert_nothing_new(&before);
    let begun = Instant::now();
    for verb in ["INIT", "DEINIT"] {
        runtime.call(verb, "", &another(&runtime)).ok();
    }
    assert!(begun.elapsed() < Duration::from_secs(1), "another bridge is not waited for");
    drop(held);
    for verb in ["ADD", "DEL", "DEINIT"] {
        runtime.call(verb, "c1", &network).ok();
    }
}

#[test]
fn leases_that_are_held_are_waited_for_a_while_and_no_other_network_waits_with_them() {
    let runtime = Runtime::new();
    let _containers = ["c1", "c2"].map(|id| runtime.container(id));
    let network = runtime.network("n1");
    runtime.call("ADD", "c2", &network).ok();
    let before = runtime.inventory();
    let held = File::open(runtime.leases().join("n1/lock")).unwrap();
    held.lock().unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| expect_held(&runtime, "ADD", &network, Duration::from_secs(10)));
        let begun = Instant::now();
        for verb in ["INIT", "ADD", "DEL", "DEINIT"] {
            runtime.call(verb, "c1", &another(&runtime)).ok();
        }
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
        waiting.join().unwrap();
    });
    let mut leases = another(&runtime);
    leases["cni.dev/valid-attachments"] = json!([]);
    runtime.call("GC", "", &leases).ok();
    runtime.assert_nothing_new_besides(&before, &["c2"]);
}
