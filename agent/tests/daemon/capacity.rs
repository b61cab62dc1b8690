//! What an agent knows of its uplinks' bandwidth, hands out and refuses.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use shunt_agent_api::{
    AgentError, Bandwidth, BridgePort, CapacityReport, CarriedReport, ErrorKind, EventKind, Rate, Reply,
    Request,
};
use shunt_lab::patience;
use shunt_netlink::ethtool::Ethtool;

use crate::events::Subscriber;
use crate::rig::Rig;
use crate::start::verb;

pub(crate) fn capacity(rig: &Rig) -> CapacityReport {
    match rig.ask(Request::Capacity) {
        Ok(Reply::Capacity(capacity)) => capacity,
        other => panic!("{other:?}"),
    }
}

/// A rig whose agent has this configuration, and a link `eth1` that does not know its speed.
pub(crate) fn configured(text: &str) -> Rig {
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
fn the_capacity_is_said_as_a_resource_slice() {
    let rig = configured("[uplinks.eth1]\negress = '10G'\ningress = '1953125Ki'\n[uplinks.eth9]");
    let slice = |node| verb(&rig, &["capacity", "--format", "resourceslice", "--node", node]);
    let (code, said) = slice("node-1");
    assert_eq!(code, 0, "{said}");
    let slice_said: Value = serde_json::from_str(&said).unwrap();
    let devices = slice_said["spec"]["devices"].as_array().unwrap();
    // Of eth9, which there is not, nothing can be promised.
    assert_eq!(devices.len(), 1, "{said}");
    let capacity = &devices[0]["capacity"];
    let values = ["egressBandwidth", "ingressBandwidth"].map(|way| capacity[way]["value"].as_str().unwrap());
    assert_eq!(values, ["10G", "2G"]);
    assert_eq!(slice_said["spec"]["nodeName"], "node-1");
    assert_eq!(slice("Node_1").0, 2);
}

#[test]
fn an_agent_is_not_healthy_while_an_uplink_is_gone() {
    let rig = configured("[uplinks.eth1]\negress = '10G'\ningress = '10G'");
    rig.ip(&["link", "delete", "eth1"]);
    let uplink = capacity(&rig).uplinks.remove(0);
    assert_eq!((uplink.egress.total, uplink.unknown.as_deref()), (0, Some("there is no such link")));
    let status = rig.status();
    assert!(!status.healthy && status.reasons.join("\n").contains("eth1"), "{status:?}");
    rig.ip(&["link", "add", "eth1", "type", "bridge"]);
    assert_eq!(capacity(&rig).uplinks[0].egress.total, 10_000_000_000);
    assert!(rig.status().healthy, "it recovers by itself");
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

#[test]
fn what_an_uplink_has_carried_is_what_the_kernel_counts_and_not_known_while_it_is_gone() {
    let rig = configured(ENFORCED);
    let carried = || capacity(&rig).uplinks[0].carried;
    assert_eq!(carried(), Some(CarriedReport::default()), "nothing while it is down");
    for name in ["eth1", "peer1"] {
        rig.ip(&["link", "set", name, "up"]);
    }
    // Both ends look for duplicates of their addresses.
    let begun = Instant::now();
    while !carried().is_some_and(|bytes| bytes.egress > 0 && bytes.ingress > 0) {
        assert!(begun.elapsed() < patience(Duration::from_secs(10)), "{:?}", carried());
        sleep(Duration::from_millis(20));
    }
    rig.ip(&["link", "delete", "eth1"]);
    assert_eq!(carried(), None);
}

pub(crate) const ENFORCED: &str = "admission = 'enforce'\n[uplinks.eth1]\negress = '100M'\ningress = '100M'";

/// Towards the container only: what it sends would need its namespace.
pub(crate) fn limited(rate: u64) -> Bandwidth {
    Bandwidth { ingress: Some(Rate { rate, burst: 80_000 }), ..Bandwidth::default() }
}

fn limit(rig: &Rig, port: &BridgePort, bandwidth: Bandwidth) -> Result<Reply, AgentError> {
    rig.ask(Request::Limit { key: port.key.clone(), bandwidth })
}

pub(crate) fn free(rig: &Rig) -> u64 {
    capacity(rig).uplinks[0].ingress.free
}

#[test]
fn an_attachment_over_the_free_capacity_is_refused_with_the_figures_and_makes_nothing() {
    let mut rig = configured(ENFORCED);
    let [mut first, mut second] = [2, 3].map(|number| rig.container(number));
    first.bandwidth = limited(70_000_000);
    second.bandwidth = limited(40_000_000);
    rig.attach(&first).unwrap();
    let refused = rig.attach(&second).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Capacity);
    let figures = "30M of 100M bit/s left for ingress, and 40M bit/s are asked for";
    assert!(refused.message.contains(figures), "{refused:?}");
    assert_eq!(rig.ports().len(), 1);
    assert_eq!(rig.files(rig.state().join("attachments")).len(), 1);
    let queues = rig.node.command("tc", &["qdisc", "show", "dev", &second.host.name]).unwrap();
    assert!(!queues.contains("tbf"), "{queues}");
    rig.detach(&first);
    rig.attach(&second).unwrap();
    assert_eq!(free(&rig), 60_000_000);
}

#[test]
fn a_limit_cannot_be_raised_over_the_free_capacity_and_stays_what_it_was() {
    let mut rig = configured(ENFORCED);
    let [mut first, mut second] = [2, 3].map(|number| rig.container(number));
    first.bandwidth = limited(50_000_000);
    second.bandwidth = limited(40_000_000);
    rig.attach(&first).unwrap();
    rig.attach(&second).unwrap();
    let state = || {
        rig.files(rig.state().join("attachments"))
            .into_iter()
            .map(|file| fs::read_to_string(rig.state().join("attachments").join(file)).unwrap())
    };
    let queue = || rig.node.command("tc", &["qdisc", "show", "dev", &second.host.name]).unwrap();
    let before = (state().collect::<Vec<_>>(), queue(), capacity(&rig));
    let refused = limit(&rig, &second, limited(51_000_000)).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Capacity);
    assert!(refused.message.contains("50M of 100M bit/s left"), "its own does not count: {refused:?}");
    assert_eq!((state().collect::<Vec<_>>(), queue(), capacity(&rig)), before);
    rig.check(&second).unwrap();
    assert_eq!(limit(&rig, &second, limited(50_000_000)).unwrap(), Reply::Limited);
    assert_eq!(free(&rig), 0);
    // 50 Mbit/s of packets of 1500 bytes, with their Ethernet headers.
    assert!(queue().contains("rate 50466Kbit"), "{}", queue());
    // Nothing is left, and admission enforces: no ADD with a rate can work.
    assert!(!rig.status().healthy);
    assert_eq!(limit(&rig, &second, Bandwidth::default()).unwrap(), Reply::Limited);
    assert_eq!(free(&rig), 50_000_000);
    assert!(rig.status().healthy && !queue().contains("tbf"), "{}", queue());
}

#[test]
fn a_changed_limit_is_in_the_books_of_the_next_agent_too() {
    let mut rig = configured(ENFORCED);
    let port = rig.container(2);
    rig.attach(&port).unwrap();
    limit(&rig, &port, limited(30_000_000)).unwrap();
    let before = capacity(&rig);
    rig.kill();
    let config = rig.lab.root().join("config.toml");
    rig.run_with("auto", &["--config", config.to_str().unwrap()]);
    assert_eq!(capacity(&rig), before);
    assert_eq!(free(&rig), 70_000_000);
}

#[test]
fn limits_of_what_is_not_attached_can_be_neither_changed_nor_checked() {
    let mut rig = configured(ENFORCED);
    let port = rig.container(2);
    let key = || port.key.clone();
    for request in [
        Request::Limit { key: key(), bandwidth: limited(8) },
        Request::CheckLimit { key: key(), bandwidth: limited(8) },
    ] {
        assert_eq!(rig.ask(request).unwrap_err().kind, ErrorKind::NotAttached);
    }
    rig.attach(&port).unwrap();
    let check = |bandwidth| rig.ask(Request::CheckLimit { key: key(), bandwidth });
    check(Bandwidth::default()).unwrap();
    let altered = check(limited(8)).unwrap_err();
    assert_eq!(altered.kind, ErrorKind::Altered);
    assert!(altered.message.contains("another bandwidth limit"), "{altered:?}");
}

#[test]
fn whoever_listens_hears_what_is_left() {
    let mut rig = configured(ENFORCED);
    let subscriber = Subscriber::new(&rig);
    let mut port = rig.container(2);
    port.bandwidth = limited(70_000_000);
    rig.attach(&port).unwrap();
    let heard = subscriber.hear(EventKind::Capacity);
    assert_eq!(heard.host_ifname.as_deref(), Some("eth1"));
    assert_eq!(heard.detail, "left: egress 100M of 100M, ingress 30M of 100M bit/s");
    limit(&rig, &port, limited(20_000_000)).unwrap();
    assert!(subscriber.hear(EventKind::Capacity).detail.contains("ingress 80M of 100M"));
    rig.detach(&port);
    assert!(subscriber.hear(EventKind::Capacity).detail.contains("ingress 100M of 100M"));
    // Nobody asks, and it is heard all the same.
    rig.ip(&["link", "delete", "eth1"]);
    assert_eq!(subscriber.hear(EventKind::Capacity).detail, "left: egress 0 of 0, ingress 0 of 0 bit/s");
}
