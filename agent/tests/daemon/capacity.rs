//! What an agent knows of its uplinks' bandwidth, hands out and refuses.

use std::fs;

use shunt_agent::netlink::ethtool::Ethtool;
use shunt_agent_api::{CapacityReport, Reply, Request};

use crate::rig::Rig;
use crate::start::verb;

fn capacity(rig: &Rig) -> CapacityReport {
    match rig.ask(Request::Capacity) {
        Ok(Reply::Capacity(capacity)) => capacity,
        other => panic!("{other:?}"),
    }
}

/// A rig whose agent has this configuration, and a link `eth1` that does not know its speed.
fn configured(text: &str) -> Rig {
    let mut rig = Rig::bare();
    rig.ip(&["link", "add", "eth1", "type", "veth", "peer", "name", "peer1"]);
    let config = rig.lab.root().join("config.toml");
    fs::write(&config, text).unwrap();
    rig.run_with("auto", &["--config", config.to_str().unwrap()]);
    rig
}

#[test]
fn an_operators_value_counts_with_factor_and_reserve() {
    let rig = configured(
        "admission = 'enforce'\n[uplinks.eth1]\negress = '10G'\ningress = '1953125Ki'\nfactor = 0.5\nreserve = '500M'",
    );
    let uplink = capacity(&rig).uplinks.remove(0);
    assert_eq!((uplink.name.as_str(), uplink.speed, uplink.unknown.as_deref()), ("eth1", 0, None));
    assert_eq!((uplink.egress.total, uplink.egress.free), (4_500_000_000, 4_500_000_000));
    assert_eq!((uplink.ingress.total, uplink.ingress.reserved), (500_000_000, 500_000_000));
    assert_eq!(uplink.slots.free, uplink.slots.total);
    let status = rig.status();
    assert!(status.healthy && status.warnings.is_empty(), "{status:?}");
    assert_eq!(status.uplinks, ["eth1"]);
    let (code, said) = verb(&rig, &["capacity"]);
    assert!(code == 0 && said.contains("4500M") && said.contains("500M"), "{said}");
}

#[test]
fn an_uplink_of_unknown_speed_is_nothing_to_promise_of_and_the_status_says_what_to_do() {
    for (admission, healthy) in [("enforce", false), ("warn", true)] {
        let mut rig = Rig::bare();
        rig.ip(&["link", "add", "eth1", "type", "veth", "peer", "name", "peer1"]);
        rig.run_with("auto", &["--uplink", "eth1", "--admission", admission]);
        let uplink = capacity(&rig).uplinks.remove(0);
        assert_eq!((uplink.speed, uplink.egress.total, uplink.ingress.free), (0, 0, 0));
        let status = rig.status();
        assert_eq!(status.healthy, healthy, "{status:?}");
        let said = [status.reasons, status.warnings].concat().join("\n");
        assert!(said.contains("uplink eth1: its speed is unknown; set egress and ingress"), "{said}");
        // An attachment without a rate asks for nothing.
        let port = rig.container(2);
        rig.attach(&port).unwrap();
        let slots = capacity(&rig).uplinks[0].slots;
        assert_eq!(slots.total - slots.free, 2, "the port and its bridge");
    }
}

#[test]
fn an_uplink_that_disappears_and_comes_back_is_noticed() {
    let rig = configured("[uplinks.eth1]\negress = '10G'\ningress = '10G'");
    rig.ip(&["link", "delete", "eth1"]);
    let uplink = capacity(&rig).uplinks.remove(0);
    assert_eq!((uplink.egress.total, uplink.unknown.as_deref()), (0, Some("there is no such link")));
    assert!(rig.status().healthy, "nothing is enforced");
    rig.ip(&["link", "add", "eth1", "type", "bridge"]);
    assert_eq!(capacity(&rig).uplinks[0].egress.total, 10_000_000_000);
}

#[test]
fn a_quantity_that_is_none_is_refused_by_its_key_and_fault() {
    let rig = Rig::bare();
    let config = rig.lab.root().join("config.toml");
    for (text, fault) in [
        ("[uplinks.eth1]\negress = '10Gbit'", "suffix"),
        ("[uplinks.eth1]\nreserve = '-1'", "negative"),
        ("[uplinks.eth1]\ningress = '20E'", "larger"),
        ("[uplinks.eth1]\nfactor = 0.0", "factor"),
        ("[uplinks.eth1]\nspeed = '1G'", "unknown field `speed`"),
        ("admission = 'maybe'", "maybe"),
    ] {
        fs::write(&config, text).unwrap();
        let mut command = rig.command("auto");
        command.arg("--config").arg(&config);
        assert_eq!(rig.run_to_end(command), 2, "{text}");
        assert!(rig.log().contains(fault), "{text}: {}", rig.log());
    }
}

#[test]
fn a_links_speed_is_read_from_the_kernel() {
    let rig = Rig::bare();
    rig.ip(&["link", "add", "eth1", "type", "veth", "peer", "name", "peer1"]);
    rig.ip(&["link", "add", "eth2", "type", "bridge"]);
    let speed = |name| rig.node.enter(|| Ethtool::open().unwrap().speed(rig.interface(name).index).unwrap());
    // What the driver of veth says of itself (drivers/net/veth.c); it is not believed, but it is read.
    assert_eq!(speed("eth1").unwrap(), Some(10_000_000_000));
    assert_eq!(speed("eth2").unwrap(), None, "a bridge without ports does not know");
}
