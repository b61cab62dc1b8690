//! What an operator sets on the ports of a running bridge: from a second later on, every port hears what it would hear on a plain bridge
//! that was told the same.

use std::time::Duration;

use shunt_lab::{Lab, Lacking, Namespace, skip};

use crate::frames;
use crate::same::assert_all_alike;
use crate::twins::{Manner, Ours, Plain};

/// By when the fast path heeds what was set.
const A_SECOND: Duration = Duration::from_secs(1);

const OPEN: Manner = Manner { keys: |_| Vec::new(), flags: |_| &[] };

/// Sets the same on both: `set` gets the node and the names of its ports.
fn assert_alike_after(set: impl Fn(&Namespace, &[String])) {
    assert!(is_alike_after(|node, ports| {
        set(node, ports);
        true
    }));
}

/// The same; false where the kernel cannot be told.
fn is_alike_after(set: impl Fn(&Namespace, &[String]) -> bool) -> bool {
    let lab = Lab::new().unwrap();
    let ours = Ours::start(&lab, &OPEN);
    let plain = Plain::like(&lab, &ours, &OPEN);
    let ports =
        ours.sandboxes.iter().map(|sandbox| ours.node.agent().port(sandbox.id()).unwrap().host_ifname);
    if !set(ours.node.namespace(), &ports.collect::<Vec<_>>()) {
        return false;
    }
    set(plain.node(), &[0, 1, 2, 3].map(|index| format!("port{index}")));
    std::thread::sleep(A_SECOND);
    let sent = frames::all(&ours.hosts, ours.bridge_mac());
    assert_all_alike(&ours, &plain, &sent, |_| false);
    true
}

fn bridge(node: &Namespace, arguments: &[&str]) {
    node.command("bridge", arguments).unwrap();
}

#[test]
fn ports_that_an_operator_isolates_hear_what_they_would_hear_on_a_plain_bridge() {
    assert_alike_after(|node, ports| {
        for port in &ports[1..3] {
            bridge(node, &["link", "set", "dev", port, "isolated", "on"]);
        }
    });
}

#[test]
fn a_port_that_an_operator_locks_hears_what_it_would_hear_on_a_plain_bridge() {
    assert_alike_after(|node, ports| {
        bridge(node, &["link", "set", "dev", &ports[1], "learning", "off", "locked", "on"]);
    });
}

#[test]
fn a_port_without_floods_hears_what_it_would_hear_on_a_plain_bridge() {
    assert_alike_after(|node, ports| {
        bridge(node, &["link", "set", "dev", &ports[0], "flood", "off", "mcast_flood", "off"]);
    });
}

/// The second port sends in a VLAN of its own, and hears the others.
#[test]
fn ports_of_a_bridge_that_filters_vlans_hear_what_they_would_hear_on_a_plain_bridge() {
    let is_alike = is_alike_after(|node, ports| {
        let filters = ["link", "set", "cni0", "type", "bridge", "vlan_filtering", "1"];
        let can = node.command("ip", &filters).is_ok();
        if can {
            bridge(node, &["vlan", "add", "dev", &ports[1], "vid", "20", "pvid", "untagged"]);
        }
        can
    });
    if !is_alike {
        skip(Lacking::Kernel("VLAN filtering of bridges (CONFIG_BRIDGE_VLAN_FILTERING)"));
    }
}
