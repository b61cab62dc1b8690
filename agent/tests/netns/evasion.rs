//! A limit on what a container sends holds although its queue is in the container, where root can take it away.

use std::net::{IpAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shunt_lab::{Namespace, measured, patience, uninterrupted};

use crate::stage::Stage;

/// Bits a second.
const RATE: u32 = 20_000_000;

const TIME: Duration = Duration::from_secs(2);

/// Nothing comes any more.
const SILENCE: Duration = Duration::from_millis(500);

/// How long the agent, which looks once a second, may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

const PIECE: usize = 1400;

/// A container "limited", without the queue that it should wait in, and another one.
fn stage() -> Stage {
    stage_with(Value::Null)
}

/// The same, with `more` in what is said of the limit.
fn stage_with(more: Value) -> Stage {
    let mut stage = Stage::empty();
    let plain = stage.network.clone();
    let mut limits = json!({ "egressRate": RATE, "egressBurst": RATE / 100 });
    limits.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    stage.network = plain.clone().with("runtimeConfig", json!({ "bandwidth": limits }));
    stage.add("limited");
    stage.network = plain;
    stage.add("other");
    let queue = ["qdisc", "delete", "dev", "eth0", "root"];
    stage.sandboxes[0].namespace().command("tc", &queue).unwrap();
    stage
}

/// Sends as fast as it can for [`TIME`]; bits a second that were sent, and that arrived.
fn flood(from: &Namespace, to: &Namespace, address: IpAddr) -> (f64, f64) {
    let receiver = to.enter(|| UdpSocket::bind((address, 0))).unwrap().unwrap();
    let sender = from.enter(|| UdpSocket::bind("0.0.0.0:0")).unwrap().unwrap();
    sender.connect(receiver.local_addr().unwrap()).unwrap();
    receiver.set_read_timeout(Some(SILENCE)).unwrap();
    let over = AtomicBool::new(false);
    let (sent, took, arrived) = thread::scope(|scope| {
        let arriving = scope.spawn(|| {
            let (mut bytes, mut piece) = (0, [0; 2 * PIECE]);
            loop {
                match uninterrupted(|| receiver.recv(&mut piece)) {
                    Ok(more) => bytes += more,
                    Err(_) if over.load(Ordering::Relaxed) => return bytes,
                    Err(_) => {}
                }
            }
        });
        let begun = Instant::now();
        let mut sent = 0;
        while begun.elapsed() < TIME {
            // A full queue anywhere is what is wanted.
            sent += sender.send(&[7; PIECE]).unwrap_or_default();
        }
        let took = begun.elapsed();
        over.store(true, Ordering::Relaxed);
        (sent, took, arriving.join().unwrap())
    });
    let rate = |bytes: usize| bytes as f64 * 8.0 / took.as_secs_f64();
    (rate(sent), rate(arrived))
}

fn assert_policed(stage: &Stage, to: &Namespace, address: IpAddr) {
    let rate = f64::from(RATE);
    let right = 0.3..1.3;
    let share = measured(&right, || {
        let (sent, arrived) = flood(stage.sandboxes[0].namespace(), to, address);
        assert!(sent > 2.0 * rate, "{sent} bits a second are no flood");
        arrived / rate
    });
    assert!(right.contains(&share), "{share} of the rate arrive at {address}");
    let drops = stage.node.agent().drops().unwrap();
    assert!(drops.iter().any(|drop| drop.stage == "police" && drop.reason == "rate_exceeded"), "{drops:?}");
}

#[test]
fn a_container_without_its_queue_sends_another_no_more_than_its_rate() {
    let stage = stage();
    let other = &stage.sandboxes[1];
    assert_policed(&stage, other.namespace(), other.addresses()[0]);
}

#[test]
fn a_container_without_its_queue_is_limited_where_its_limit_is_one_of_some_subnets_too() {
    let stage = stage_with(json!({ "shapedSubnets": ["10.77.0.0/16"] }));
    let other = &stage.sandboxes[1];
    assert_policed(&stage, other.namespace(), other.addresses()[0]);
}

#[test]
fn what_a_limit_is_not_of_is_free_without_a_queue_too() {
    let stage = stage_with(json!({ "unshapedSubnets": ["10.77.0.0/16"] }));
    let other = &stage.sandboxes[1];
    let free = 2.0..f64::MAX;
    let share = measured(&free, || {
        let (_, arrived) = flood(stage.sandboxes[0].namespace(), other.namespace(), other.addresses()[0]);
        arrived / f64::from(RATE)
    });
    assert!(free.contains(&share), "{share} of the rate arrive, although it is not limited there");
    let drops = stage.node.agent().drops().unwrap();
    assert!(drops.iter().all(|drop| drop.reason != "rate_exceeded"), "{drops:?}");
}

#[test]
fn a_container_without_its_queue_sends_the_node_no_more_than_its_rate() {
    let stage = stage();
    assert_policed(&stage, stage.node.namespace(), "10.77.0.1".parse().unwrap());
}

#[test]
fn the_queue_that_a_container_takes_away_is_put_back() {
    let stage = stage();
    let limited = stage.sandboxes[0].namespace();
    let begun = Instant::now();
    while !limited.command("tc", &["qdisc", "show", "dev", "eth0"]).unwrap().contains("tbf") {
        assert!(begun.elapsed() < patience(PATIENCE), "{}", stage.node.agent().log_tail());
        thread::sleep(Duration::from_millis(50));
    }
}
