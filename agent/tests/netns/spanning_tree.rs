//! Two ways from one bridge to one switch: a spanning tree lets one of them forward, for the programs as well as for the kernel's
//! bridges at both ends.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shunt_lab::{Namespace, patience};

use crate::restrictions::tap;
use crate::stage::Stage;
use crate::uplinks::{add_in, lost_at};
use crate::wire::{BROADCAST, Wire, frame, says, tagged};

/// Twice a forward delay of two seconds, the shortest that a bridge takes, and what a busy machine adds.
const PATIENCE: Duration = Duration::from_secs(30);

/// One frame has arrived before the next is sent.
const BETWEEN: Duration = Duration::from_millis(20);

const TREE: [&str; 4] = ["stp_state", "1", "forward_delay", "200"];
const UPLINKS: [&str; 2] = ["up0", "up1"];

/// A node with both ends of a ring, a switch that is the root of its tree, and a host behind it.
struct Ring {
    stage: Stage,
    switch: Namespace,
    outside: Namespace,
}

impl Ring {
    fn set() -> Self {
        let mut stage = Stage::empty();
        let [switch, outside] = ["switch", "outside"].map(|name| stage.lab.namespace(name).unwrap());
        let node = stage.node.namespace();
        for (uplink, port) in UPLINKS.into_iter().zip(["port0", "port1"]) {
            node.pair(uplink, &switch, port).unwrap();
        }
        switch.pair("port2", &outside, "eth0").unwrap();
        let bridge = |inside: &Namespace, name: &str, more: &[&str]| {
            let make = [&["link", "add", name, "type", "bridge"], &TREE[..], more].concat();
            inside.command("ip", &make).unwrap();
            inside.command("ip", &["link", "set", name, "up"]).unwrap();
        };
        bridge(&switch, "ring", &["priority", "0"]);
        for port in ["port0", "port1", "port2"] {
            switch.command("ip", &["link", "set", port, "master", "ring"]).unwrap();
        }
        bridge(node, "cni0", &[]);
        stage.empty = stage.node.inventory().unwrap();
        stage.network = stage.network.with("isDefaultGateway", json!(false));
        for (id, uplink) in ["one", "two"].into_iter().zip(UPLINKS) {
            let network = stage.network.clone();
            stage.network = network.clone().with("uplink", json!(uplink));
            add_in(&mut stage, id, "vlan", json!(10));
            stage.network = network;
        }
        stage.add("open");
        Self { stage, switch, outside }
    }

    /// What kernel's bridges say of their ports, by name.
    fn states(&self) -> BTreeMap<String, String> {
        let of = |inside: &Namespace| {
            let shown = inside.command("ip", &["-j", "-d", "link", "show", "type", "bridge_slave"]).unwrap();
            let shown: Vec<Value> = serde_json::from_str(&shown).unwrap();
            let state = |link: &Value| {
                let state = &link["linkinfo"]["info_slave_data"]["state"];
                Some((link["ifname"].as_str()?.to_owned(), state.as_str()?.to_owned()))
            };
            shown.iter().filter_map(state).collect::<BTreeMap<_, _>>()
        };
        of(self.stage.node.namespace()).into_iter().chain(of(&self.switch)).collect()
    }

    /// Waits until the tree is what it will be, and the agent knows it. Every port of such a bridge listens first.
    fn settle(&self, states: [&str; 2]) {
        let begun = Instant::now();
        let are = || {
            let all = self.states();
            let is_settled = all.values().all(|state| !matches!(state.as_str(), "listening" | "learning"));
            UPLINKS.map(|uplink| all.get(uplink).cloned().filter(|_| is_settled).unwrap_or_default())
        };
        let blocked = || {
            let uplinks = self.stage.node.agent().status().unwrap().bridge_uplinks;
            UPLINKS.map(|name| uplinks.iter().any(|uplink| uplink.name == name && uplink.blocked))
        };
        while are() != states || blocked() != states.map(|state| state == "blocking") {
            let log = || self.stage.node.agent().log_tail();
            assert!(begun.elapsed() < patience(PATIENCE), "{:?} {:?} {}", are(), blocked(), log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Every frame arrives, and once: one that arrives twice has gone round.
    fn assert_no_loop(&self, when: &str) {
        let wire = Wire::tap(&self.outside, "eth0");
        let [one, two, open] = &self.stage.sandboxes[..] else { unreachable!("three were added") };
        let (one, two, open) = (tap(one), tap(two), tap(open));
        let all = [("one", &one), ("two", &two), ("open", &open), ("wire", &wire)];
        let ways: [(&str, &Wire, Option<u16>, &[&str]); 6] = [
            ("from outside in a VLAN", &wire, Some(10), &["one", "two"]),
            ("from outside", &wire, None, &["open"]),
            ("from one", &one, None, &["two", "wire"]),
            ("from open", &open, None, &["wire"]),
            // Whatever was learned of the way back is right by now.
            ("from outside in a VLAN again", &wire, Some(10), &["one", "two"]),
            ("from one again", &one, None, &["two", "wire"]),
        ];
        for (what, from, tag, _) in ways {
            let text = format!("{when} {what}.");
            let sent = frame(BROADCAST, from.mac(), &text);
            from.send(&tag.map_or(sent.clone(), |tag| tagged(tag, sent.clone())));
            std::thread::sleep(BETWEEN);
        }
        for (who, tap) in all {
            let heard = tap.until_silence();
            for (what, _, _, to) in ways {
                let text = format!("{when} {what}.");
                let heard = heard.iter().filter(|frame| says(frame, &text)).count();
                assert_eq!(heard, usize::from(to.contains(&who)), "{who} hears what went {text}");
            }
        }
        for (what, from, to, tag) in [("in", &wire, &one, Some(10)), ("out", &one, &wire, None)] {
            let text = format!("{when} alone {what}");
            let sent = frame(to.mac(), from.mac(), &text);
            from.send(&tag.map_or(sent.clone(), |tag| tagged(tag, sent.clone())));
            to.until(|frame| says(frame, &text));
        }
    }
}

#[test]
fn by_an_uplink_that_a_spanning_tree_blocks_nothing_goes_until_it_is_needed() {
    let ring = Ring::set();
    ring.settle(["forwarding", "blocking"]);
    ring.assert_no_loop("first");
    assert!(lost_at(&ring.stage, "up1", "blocked") > 0, "{:?}", ring.stage.node.agent().drops());

    ring.switch.command("ip", &["link", "set", "port0", "down"]).unwrap();
    ring.settle(["disabled", "forwarding"]);
    ring.assert_no_loop("then");

    ring.switch.command("ip", &["link", "set", "port0", "up"]).unwrap();
    ring.settle(["forwarding", "blocking"]);
    ring.assert_no_loop("at last");

    // An agent that starts finds the tree as it is.
    let Ring { mut stage, switch, outside } = ring;
    stage.node.agent_mut().terminate().unwrap();
    stage.node.restart_agent().unwrap();
    let ring = Ring { stage, switch, outside };
    ring.settle(["forwarding", "blocking"]);
    ring.assert_no_loop("by the next agent");
}
