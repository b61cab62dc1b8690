//! `stormControl`: how much a port floods, counted to the packet.

use std::time::Instant;

use serde_json::json;

use crate::restrictions::{drops, tap};
use crate::stage::Stage;
use crate::wire::{BROADCAST, Mac, frame, says};

const GROUP: Mac = [0x01, 0x00, 0x5e, 0, 0, 7];

/// Packets a second.
const LIMIT: u64 = 50;
const SENT: u64 = 400;

#[test]
fn a_port_floods_as_much_as_it_may_and_sends_everything_else() {
    let stage = Stage::empty();
    let restrictions = assert_floods_so_much(stage);
    assert_eq!(restrictions, ["stormControl"]);
}

#[test]
fn so_does_a_port_in_a_vlan_whose_copies_are_the_programs() {
    let mut stage = Stage::empty();
    stage.network = stage.network.with("isDefaultGateway", json!(false)).with("vlan", json!(10));
    let mut restrictions = assert_floods_so_much(stage);
    restrictions.sort();
    assert_eq!(restrictions, ["stormControl", "vlan"]);
}

/// Of two containers of the stage's network the first one's floods are limited; its restrictions.
fn assert_floods_so_much(mut stage: Stage) -> Vec<String> {
    let open = stage.network.clone();
    stage.network = open.clone().with("stormControl", json!({ "broadcast": LIMIT, "multicast": LIMIT }));
    stage.add("one");
    stage.network = open;
    stage.add("two");
    let [one, two] = &stage.sandboxes[..] else { unreachable!("two were added") };
    // What its kernel sends to groups of its own accord would be counted too.
    one.namespace().sysctl("net/ipv6/conf/eth0/disable_ipv6", "1").unwrap();
    let (from, to) = (tap(one), tap(two));
    for (destination, text) in [(BROADCAST, "to everybody"), (GROUP, "to a group"), (to.mac(), "to one")] {
        let before = drops(&stage, "one", "storm_control");
        let begun = Instant::now();
        for _ in 0..SENT {
            from.send(&frame(destination, from.mac(), text));
        }
        let took = begun.elapsed();
        from.send(&frame(to.mac(), from.mac(), "the last"));
        let heard = to.until(|frame| says(frame, "the last"));
        let heard = heard.iter().filter(|frame| says(frame, text)).count() as u64;
        let dropped = drops(&stage, "one", "storm_control") - before;
        if destination == to.mac() {
            assert_eq!((heard, dropped), (SENT, 0), "{text}");
            continue;
        }
        // A burst of a second's, and what time allowed meanwhile.
        let most = LIMIT + LIMIT * (took.as_secs() + 1) + 2;
        assert!(heard <= most && heard >= 10, "{text}: {heard} in {took:?}");
        assert!(heard + dropped >= SENT, "{text}: {heard} heard, {dropped} dropped");
    }
    stage.node.agent().port("one").unwrap().restrictions
}
