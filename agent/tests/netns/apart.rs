//! Isolated containers of a bridge with an uplink: they reach the wire and the gateway, and the wire them, but never each other. And
//! that no restriction is a rule of netfilter's.

use serde_json::{Value, json};
use shunt_lab::{Conversation, Echo, Protocol};

use crate::restrictions::{assert_talk_to_gateway, tap};
use crate::stage::Stage;
use crate::uplinks::{add_in, stage};
use crate::wire::{BROADCAST, Wire, frame, says};

/// Somebody's beyond the uplink.
const OUTSIDE: &str = "10.77.0.200";

#[test]
fn isolated_containers_reach_the_wire_and_the_gateway_and_never_each_other() {
    let (mut stage, outside) = stage();
    stage.network = stage.network.with("isDefaultGateway", json!(true));
    for id in ["one", "two"] {
        add_in(&mut stage, id, "portIsolation", json!(true));
    }
    stage.node.settle().unwrap();
    outside.command("ip", &["address", "add", &format!("{OUTSIDE}/24"), "dev", "eth0"]).unwrap();
    let there = Echo::listen(&outside, OUTSIDE.parse().unwrap(), 7300).unwrap();
    let [one, two] = &stage.sandboxes[..] else { unreachable!("two were added") };
    for sandbox in [one, two] {
        assert_talk_to_gateway(&stage, sandbox);
        let here = sandbox.echo(sandbox.addresses()[0], 7301).unwrap();
        for protocol in [Protocol::Tcp, Protocol::Udp] {
            for (from, echo) in [(sandbox.namespace(), &there), (&outside, &here)] {
                let talk = Conversation::open(from, protocol, echo.address());
                talk.and_then(|mut talk| talk.chat(20, 1200)).unwrap();
            }
        }
    }
    let echo = stage.echo(1, 7000);
    assert!(one.talk_to(Protocol::Tcp, &echo).is_err(), "they have met");

    let (wire, from, to) = (Wire::tap(&outside, "eth0"), tap(one), tap(two));
    for destination in [to.mac(), BROADCAST, [0x01, 0x00, 0x5e, 0, 0, 7], [2, 0xbe, 0xef, 0, 0, 1]] {
        from.send(&frame(destination, from.mac(), "not for the other"));
    }
    wire.until(|frame| says(frame, "not for the other"));
    // Nor by way of somebody outside who sends it back.
    wire.send(&frame(to.mac(), from.mac(), "not for the other"));
    wire.send(&frame(BROADCAST, wire.mac(), "the last"));
    let seen = to.until(|frame| says(frame, "the last"));
    assert!(!seen.iter().any(|frame| says(frame, "not for the other")), "{seen:02x?}");
}

#[test]
fn no_restriction_is_a_rule_of_netfilters() {
    let mut stage = Stage::empty();
    let limits = json!({ "broadcast": 50, "multicast": 50 });
    let keys: [(&str, Value); 6] = [
        ("portIsolation", json!(true)),
        ("macspoofchk", json!(true)),
        ("ipspoofchk", json!(true)),
        ("stormControl", limits),
        ("ingressPolicy", json!("same-bridge")),
        ("ingressPolicy", json!("isolated")),
    ];
    for (number, (key, value)) in keys.into_iter().enumerate() {
        add_in(&mut stage, &format!("c{number}"), key, value);
    }
    let network = stage.network.clone();
    stage.network = network.clone().with("isDefaultGateway", json!(false));
    add_in(&mut stage, "vlan", "vlan", json!(10));
    add_in(&mut stage, "trunk", "vlanTrunk", json!([{ "id": 10 }]));
    stage.network = ["portIsolation", "macspoofchk", "ipspoofchk"]
        .into_iter()
        .fold(network, |network, key| network.with(key, json!(true)));
    stage.add("all");
    assert_eq!(stage.node.agent().port("all").unwrap().restrictions.len(), 3);
    let ports = stage.node.agent().ports().unwrap();
    assert!(ports.len() == 9 && ports.iter().all(|port| !port.restrictions.is_empty()), "{ports:?}");
    let rules = stage.node.namespace().command("nft", &["list", "ruleset"]).unwrap();
    assert_eq!(rules.trim(), "");
}
