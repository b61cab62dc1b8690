//! Limits of `type: shunt`: the rate holds between neighbours of one node, and costs only who has it.

use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shunt_lab::{Protocol, Sandbox, measured};

use crate::stage::Stage;
use crate::stream::Stream;

/// Bits a second.
pub(crate) const RATE: u32 = 20_000_000;

/// What a runtime sends where it means no burst in particular.
pub(crate) const ABSURD: u64 = 4_294_967_295;

/// The burst and what a flow's beginning does are over.
const SETTLED: Duration = Duration::from_millis(500);

const TIME: Duration = Duration::from_secs(3);

fn limits(direction: &str) -> Value {
    json!({ "bandwidth": { format!("{direction}Rate"): RATE, format!("{direction}Burst"): ABSURD } })
}

/// A container "limited", and two without limits.
fn stage(direction: &str) -> Stage {
    let mut stage = Stage::empty();
    let plain = stage.network.clone();
    stage.network = plain.clone().with("runtimeConfig", limits(direction));
    stage.add("limited");
    stage.network = plain;
    stage.add("free");
    stage.add("other");
    stage
}

/// The share of the rate that arrives, within what a busy machine makes of it.
pub(crate) fn assert_limited(from: &Sandbox, to: &Sandbox) {
    let right = 0.6..1.15;
    let share = measured(&right, || Stream::run(from, to, TIME).rate(SETTLED) / f64::from(RATE));
    assert!(right.contains(&share), "{} to {}: {share} of the rate", from.id(), to.id());
}

pub(crate) fn assert_unlimited(from: &Sandbox, to: &Sandbox) {
    let right = 4.0 * f64::from(RATE)..f64::INFINITY;
    let rate = measured(&right, || Stream::run(from, to, SETTLED * 2).rate(SETTLED / 2));
    assert!(right.contains(&rate), "{} to {}: {rate} bits a second", from.id(), to.id());
}

/// Whoever has no limit is as fast as ever.
fn assert_fast(stage: &Stage, client: usize, server: usize) {
    let echo = stage.echo(server, 7300);
    let mut talk = stage.sandboxes[client].talk_to(Protocol::Udp, &echo).unwrap();
    talk.say(100).unwrap();
    let id = stage.sandboxes[client].id();
    let before = stage.node.agent().port(id).unwrap().from;
    talk.chat(200, 1000).unwrap();
    let after = stage.node.agent().port(id).unwrap().from;
    assert!(after.fast - before.fast >= 200, "{before:?} {after:?}");
}

#[test]
fn what_a_container_gets_is_held_to_its_rate() {
    let stage = stage("ingress");
    let [limited, free, other] = &stage.sandboxes[..] else { panic!() };
    assert_limited(free, limited);
    assert_unlimited(limited, free);
    assert_unlimited(free, other);
    assert_fast(&stage, 1, 2);
    let limits = stage.node.agent().port("limited").unwrap().limits;
    assert_eq!((limits.ingress, limits.egress), (Some(RATE.into()), None));
    stage.assert_talk(1, 0);
}

#[test]
fn what_a_container_sends_is_held_to_its_rate() {
    let stage = stage("egress");
    let [limited, free, other] = &stage.sandboxes[..] else { panic!() };
    assert_limited(limited, free);
    assert_unlimited(free, limited);
    assert_unlimited(free, other);
    // What has waited is within what is policed, but for what a node that stands still makes of it.
    let drops = stage.node.agent().drops().unwrap();
    let policed: u64 = drops.iter().filter(|drop| drop.stage == "police").map(|drop| drop.packets).sum();
    let sent = stage.node.agent().port("limited").unwrap().from.packets;
    assert!(policed * 50 <= sent, "{policed} of {sent} packets were dropped");
    // What waits does so before it is sent, and then it is as fast as ever.
    assert_fast(&stage, 0, 1);
    stage.assert_talk(0, 2);
}

#[test]
fn limits_hold_without_the_agent_and_under_a_new_one() {
    let mut stage = stage("ingress");
    stage.node.agent_mut().kill().unwrap();
    assert_limited(&stage.sandboxes[1], &stage.sandboxes[0]);
    stage.node.restart_agent().unwrap();
    assert_limited(&stage.sandboxes[1], &stage.sandboxes[0]);
    let limits = stage.node.agent().port("limited").unwrap().limits;
    assert_eq!(limits.ingress, Some(RATE.into()));
}

#[test]
fn a_limit_that_somebody_takes_away_is_set_again() {
    let stage = stage("ingress");
    let host = stage.node.agent().port("limited").unwrap().host_ifname;
    stage.node.namespace().command("tc", &["qdisc", "delete", "dev", &host, "root"]).unwrap();
    let begun = Instant::now();
    while !stage.node.namespace().command("tc", &["qdisc", "show", "dev", &host]).unwrap().contains("tbf") {
        assert!(begun.elapsed() < Duration::from_secs(10), "the limit is not set again");
        sleep(Duration::from_millis(20));
    }
    assert_limited(&stage.sandboxes[1], &stage.sandboxes[0]);
}

#[test]
fn a_chained_bandwidth_limits_and_its_check_misses_what_is_gone() {
    let mut stage = Stage::empty_without_repairs();
    let socket = stage.node.agent().socket().to_owned();
    let plain = stage.network.clone();
    stage.network = plain.clone().then(json!({ "type": "shunt-bandwidth", "agentSocket": socket,
        "ingressRate": RATE, "ingressBurst": ABSURD, "egressRate": RATE, "egressBurst": ABSURD }));
    stage.add("limited");
    let chain = std::mem::replace(&mut stage.network, plain);
    stage.add("free");
    let [limited, free] = &stage.sandboxes[..] else { panic!() };
    assert_limited(free, limited);
    assert_limited(limited, free);
    let check = || chain.check(stage.node.namespace(), limited.container(), &limited.attachment().result);
    check().unwrap();
    limited.namespace().command("tc", &["qdisc", "delete", "dev", "eth0", "root"]).unwrap();
    let error = check().unwrap_err().to_string();
    assert!(error.contains("the limit of what the container sends is missing"), "{error}");
}
