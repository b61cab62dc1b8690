//! The reference `bandwidth` after shunt. It shapes on the host end (a tbf for what the container gets, and a redirect to
//! an ifb for what it sends), which a packet on the fast path would pass by.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shunt_lab::{Sandbox, measured};

use crate::stage::Stage;
use crate::stream::Stream;

/// Bits a second.
pub(crate) const RATE: u32 = 20_000_000;

/// Bits: enough for the largest segment that a veth carries at once, 64 KiB, and no more than a tenth of a second.
pub(crate) const BURST: u32 = 2_000_000;

const BURST_SPENT: Duration = Duration::from_millis(300);

/// The plugin with these limits.
pub(crate) fn limited(rates: Value) -> Value {
    let mut config = rates;
    config["type"] = json!("bandwidth");
    config
}

/// The rate holds, within what a busy machine and TCP's manners make of it.
pub(crate) fn assert_limited(from: &Sandbox, to: &Sandbox) {
    let right = 0.6..1.25;
    let run = || Stream::run(from, to, Duration::from_millis(1800)).rate(BURST_SPENT) / f64::from(RATE);
    let share = measured(&right, run);
    assert!(right.contains(&share), "{} to {}: {share} of the rate", from.id(), to.id());
}

fn assert_unlimited(from: &Sandbox, to: &Sandbox) {
    let right = 5.0 * f64::from(RATE)..f64::INFINITY;
    let rate = measured(&right, || Stream::run(from, to, Duration::from_millis(600)).rate(BURST_SPENT));
    assert!(right.contains(&rate), "{} to {}: {rate} bits a second", from.id(), to.id());
}

#[test]
fn what_a_container_sends_is_limited_and_what_it_gets_is_not() {
    let Some(stage) = Stage::set() else { return };
    let plain = stage.shunt();
    let network = stage.shunt().then(limited(json!({ "egressRate": RATE, "egressBurst": BURST })));
    let before = stage.before(&network);
    let limited = stage.add(&network, "limited");
    let [free, other] = ["free", "other"].map(|id| stage.add(&plain, id));
    assert_limited(&limited, &free);
    assert_unlimited(&free, &limited);
    stage.assert_talk(&limited, &free);
    // Nobody else is slower for it.
    stage.assert_fast(&free, &other);
    stage.remove(&network, &limited);
    stage.remove(&plain, &free);
    stage.remove(&plain, &other);
    stage.assert_clean(&before);
}

#[test]
fn what_a_container_gets_is_limited_and_what_it_sends_is_not() {
    let Some(stage) = Stage::set() else { return };
    let plain = stage.shunt();
    let rates = json!({ "bandwidth": { "ingressRate": RATE, "ingressBurst": BURST } });
    let bandwidth = json!({ "capabilities": { "bandwidth": true }, "runtimeConfig": rates });
    let network = stage.shunt().then(limited(bandwidth));
    let before = stage.before(&network);
    let limited = stage.add(&network, "limited");
    let free = stage.add(&plain, "free");
    assert_limited(&free, &limited);
    assert_unlimited(&limited, &free);
    stage.assert_talk(&limited, &free);
    stage.remove(&network, &limited);
    stage.remove(&plain, &free);
    stage.assert_clean(&before);
}

/// A megabyte at once is what this burst allows; at the rate alone it would take a second.
#[test]
fn a_burst_passes_at_once_and_the_rate_holds_after_it() {
    let Some(stage) = Stage::set() else { return };
    let (rate, burst) = (8_000_000, 8_000_000);
    let rates =
        json!({ "ingressRate": rate, "ingressBurst": burst, "egressRate": rate, "egressBurst": burst });
    let network = stage.shunt().then(limited(rates));
    let before = stage.before(&network);
    let [one, two] = ["one", "two"].map(|id| stage.add(&network, id));
    let (at_once, held) = (0.0..0.4, 0.6..1.25);
    let mut share = 0.0;
    let took = measured(&at_once, || {
        // As long as the bucket takes to fill again, should this not be the first time.
        std::thread::sleep(Duration::from_millis(1200));
        let stream = Stream::run(&one, &two, Duration::from_secs(2));
        share = stream.rate(Duration::from_secs(1)) / f64::from(rate);
        // Neither is a figure when the machine stood still.
        if held.contains(&share) { stream.time_of(750_000).as_secs_f64() } else { f64::NAN }
    });
    assert!(at_once.contains(&took) && held.contains(&share), "{took} s, and then {share} of the rate");
    stage.remove(&network, &one);
    stage.remove(&network, &two);
    stage.assert_clean(&before);
}

/// The agent learns of a shaper while it runs; a new agent has to find it.
#[test]
fn limits_hold_under_a_new_agent() {
    let Some(mut stage) = Stage::set() else { return };
    let rates =
        json!({ "ingressRate": RATE, "ingressBurst": BURST, "egressRate": RATE, "egressBurst": BURST });
    let plain = stage.shunt();
    let network = stage.shunt().then(limited(rates));
    let before = stage.before(&network);
    let limited = stage.add(&network, "limited");
    let free = stage.add(&plain, "free");
    stage.node.agent_mut().kill().unwrap();
    assert_limited(&limited, &free);
    stage.node.restart_agent().unwrap();
    assert_limited(&limited, &free);
    assert_limited(&free, &limited);
    stage.remove(&network, &limited);
    stage.remove(&plain, &free);
    stage.assert_clean(&before);
}

/// Waits until the agent has heard of a change, and nearly all of what `client` sends is fast.
fn wait_until_fast(stage: &Stage, client: &Sandbox, server: &Sandbox) {
    let begun = Instant::now();
    loop {
        let [fast, all] = stage.fast_of(client, server);
        if fast * 100 >= all * 99 {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(3), "{fast} of {all} from {}", client.id());
    }
}

#[test]
fn what_is_limited_goes_by_the_kernels_way_until_the_shaper_is_gone() {
    let Some(stage) = Stage::set() else { return };
    let plain = stage.shunt();
    let network = stage.shunt().then(limited(json!({ "egressRate": RATE, "egressBurst": BURST })));
    let before = stage.before(&network);
    let limited = stage.add(&network, "limited");
    let free = stage.add(&plain, "free");
    assert_eq!(stage.fast_of(&limited, &free)[0], 0);
    let host = stage.port(&limited).host_ifname;
    stage.node.namespace().command("tc", &["qdisc", "delete", "dev", &host, "ingress"]).unwrap();
    wait_until_fast(&stage, &limited, &free);
    stage.remove(&network, &limited);
    stage.remove(&plain, &free);
    stage.assert_clean(&before);
}
