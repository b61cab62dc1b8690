//! The plugin is killed at any moment, and the next DEL or GC leaves exactly nothing.

use std::time::{Duration, Instant};

use serde_json::Value;
use shunt_lab::Container;

use crate::stage::Stage;

/// How many execs are killed.
const ROUNDS: u32 = 200;

/// A slow machine does fewer; this many it does however slow it is.
const AT_LEAST: u32 = 40;
const AT_MOST: Duration = Duration::from_secs(40);

/// The same moments every time, as far as a scheduler allows.
const SEED: u64 = 0x5eed_0007;

/// xorshift64
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[test]
fn a_plugin_that_is_killed_at_any_moment_leaves_nothing_to_the_next_del_or_gc() {
    let mut stage = Stage::empty();
    // The range of moments: a little more than what an exec takes that nobody kills. The first ADD makes a bridge, too.
    let (mut longest, mut deleted) = (AT_MOST, AT_MOST);
    for _ in 0..5 {
        stage.add("calibration");
        longest = longest.min(stage.sandboxes[0].attachment().took);
        deleted = deleted.min(stage.sandboxes[0].delete(&stage.node, &stage.network).unwrap());
        stage.sandboxes.clear();
    }
    let (longest, deleted) = (longest.max(Duration::from_millis(2)) * 5 / 4, deleted * 5 / 4);
    assert_eq!(stage.left(), [""; 0]);

    let node = stage.node.namespace();
    let container = Container::create(&stage.lab, "victim").unwrap();
    let (begun, mut state) = (Instant::now(), SEED);
    let (mut rounds, mut killed) = (0, 0);
    while rounds < ROUNDS && (rounds < AT_LEAST || begun.elapsed() < AT_MOST) {
        let moment = |limit: Duration, state: &mut u64| {
            Duration::from_micros(random(state) % (limit.as_micros() as u64).max(1))
        };
        let (verb, result, after) = if rounds % 2 == 0 {
            ("ADD", Value::Null, moment(longest, &mut state))
        } else {
            let result = stage.network.add(node, &container).unwrap().result;
            ("DEL", result, moment(deleted, &mut state))
        };
        killed += u32::from(stage.network.interrupt(verb, node, &container, &result, after).unwrap());
        let gc = random(&mut state).is_multiple_of(2);
        if gc {
            stage.network.collect(node, &[], &container).unwrap();
        } else {
            stage.network.del(node, &container, &result).unwrap();
        }
        rounds += 1;
        let how = || {
            format!("round {rounds}: {verb} killed after {after:?}, then {}", if gc { "GC" } else { "DEL" })
        };
        let links = container.namespace().command("ip", &["-oneline", "link", "show"]).unwrap();
        assert_eq!(links.lines().count(), 1, "{}: {links}", how());
        assert_eq!(stage.left(), [""; 0], "{}", how());
    }
    println!("{rounds} execs in {:.1?}, {killed} of them killed in time", begun.elapsed());
    assert!(killed > rounds / 4, "{killed} of {rounds} were killed: the moments are wrong");
    assert_eq!(stage.left(), [""; 0]);
    let agent = stage.node.agent();
    assert_eq!(agent.status().unwrap().attachments, 0);
    assert!(agent.status().unwrap().healthy, "{:?}", agent.status());
    assert_eq!(agent.ask("fdb").unwrap().as_array().unwrap().len(), 0);
}
