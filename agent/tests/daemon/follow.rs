//! Changes of links that nobody tells the agent but the kernel.

use std::time::Duration;

use shunt_agent_api::EventKind;
use shunt_dataplane::abi::{PORT_SHARED, STATION_HOST, STATION_PEER_UP, STATION_QUEUED};

use crate::events::Subscriber;
use crate::kernel::{add_foreign_filter, container_mac, port, station};
use crate::rig::{BRIDGE, Rig, eventually};

#[test]
fn a_link_that_is_deleted_takes_its_attachment_with_it() {
    let mut rig = Rig::start("auto");
    let (first, second) = (rig.container(2), rig.container(3));
    rig.attach(&first).unwrap();
    rig.attach(&second).unwrap();
    rig.ip(&["link", "del", &first.host.name]);
    eventually("one attachment is left", || rig.ports().len() == 1);
    assert_eq!(rig.files(rig.state().join("attachments")), ["net@c3@eth0.json"]);
    assert_eq!(station(&rig, first.bridge.index, container_mac(2)), None);
    rig.check(&second).unwrap();
    assert_eq!(rig.detach(&first), None);
}

#[test]
fn a_container_that_dies_takes_its_attachment_with_it() {
    let mut rig = Rig::start("auto");
    let port = rig.container(2);
    rig.attach(&port).unwrap();
    rig.containers.clear();
    eventually("no attachment is left", || rig.ports().is_empty());
    rig.assert_empty();
}

#[test]
fn a_bridge_that_is_deleted_takes_its_attachments_with_it() {
    let mut rig = Rig::start_without_repairs();
    let ports = [rig.container(2), rig.container(3)];
    for port in &ports {
        rig.attach(port).unwrap();
    }
    rig.ip(&["link", "del", BRIDGE]);
    eventually("no attachment is left", || rig.ports().is_empty());
    for host in ["veth2", "veth3"] {
        rig.ip(&["link", "del", host]);
    }
    eventually("nobody is to be put back", || rig.files(rig.state().join("attachments")).is_empty());
    rig.assert_empty();
}

#[test]
fn a_peer_that_goes_down_is_not_redirected_to_until_it_is_up_again() {
    let mut rig = Rig::start("auto");
    let port = rig.container(2);
    rig.attach(&port).unwrap();
    let is_up = || {
        let station = station(&rig, port.bridge.index, container_mac(2)).unwrap();
        station.flags & STATION_PEER_UP != 0
    };
    assert!(is_up());
    rig.containers[0].command("ip", &["link", "set", "eth0", "down"]).unwrap();
    eventually("the station is known to be down", || !is_up());
    rig.containers[0].command("ip", &["link", "set", "eth0", "up"]).unwrap();
    eventually("the station is known to be up", is_up);
}

#[test]
fn what_was_told_of_a_peer_before_it_was_attached_does_not_take_it_down() {
    let mut rig = Rig::start("auto");
    let port = rig.container(2);
    let subscriber = Subscriber::new(&rig);
    for _ in 0..20 {
        for state in ["down", "up"] {
            rig.containers[0].command("ip", &["link", "set", "eth0", state]).unwrap();
        }
        rig.attach(&port).unwrap();
        // Longer than changes are gathered.
        std::thread::sleep(Duration::from_millis(20));
        rig.detach(&port).unwrap();
    }
    let heard: Vec<_> = subscriber.events().take(40).map(|event| event.event).collect();
    assert_eq!(heard, [EventKind::Attach, EventKind::Detach].repeat(20));
}

#[test]
fn a_bridge_that_takes_another_address_is_found_under_it() {
    let mut rig = Rig::start("auto");
    let port = rig.container(2);
    rig.attach(&port).unwrap();
    rig.ip(&["link", "set", BRIDGE, "address", "02:00:00:00:aa:aa"]);
    eventually("the node is a station under its new address", || {
        station(&rig, port.bridge.index, [2, 0, 0, 0, 0xaa, 0xaa])
            .is_some_and(|station| station.flags & STATION_HOST != 0)
    });
    assert_eq!(crate::kernel::stations(&rig), 2);
    rig.check(&port).unwrap();
}

#[test]
fn a_shaper_or_a_filter_of_somebody_else_is_not_passed_by_until_it_goes() {
    let mut rig = Rig::start("tcx");
    let (first, second) = (rig.container(2), rig.container(3));
    rig.attach(&first).unwrap();
    rig.attach(&second).unwrap();
    let is_queued = || {
        let station = station(&rig, second.bridge.index, container_mac(3)).unwrap();
        station.flags & STATION_QUEUED != 0
    };
    let is_shared = || port(&rig, first.host.index).unwrap().flags & PORT_SHARED != 0;
    assert!(!is_queued() && !is_shared());

    let tbf = ["tbf", "rate", "100mbit", "burst", "64kb", "latency", "50ms"];
    rig.node.command("tc", &[&["qdisc", "add", "dev", "veth3", "root"][..], &tbf].concat()).unwrap();
    eventually("the queue is known", is_queued);
    add_foreign_filter(&rig, "veth2", "ingress", &["prio", "7"]);
    eventually("the filter is known", is_shared);
    rig.check(&first).unwrap();
    rig.check(&second).unwrap();
    rig.exchange(0, 1, 20);
    let passed = rig.node.command("tc", &["-s", "qdisc", "show", "dev", "veth3"]).unwrap();
    assert!(!passed.contains("Sent 0 bytes 0 pkt"), "{passed}");

    rig.node.command("tc", &["qdisc", "del", "dev", "veth3", "root"]).unwrap();
    rig.node.command("tc", &["qdisc", "del", "dev", "veth2", "clsact"]).unwrap();
    eventually("neither is there any more", || !is_queued() && !is_shared());
}

#[test]
fn what_somebody_has_put_onto_a_host_end_before_the_attach_is_not_passed_by() {
    let mut rig = Rig::start("tcx");
    let containers = [rig.container(2), rig.container(3)];
    add_foreign_filter(&rig, "veth2", "ingress", &["prio", "7"]);
    // What the kernel tells of it is heard before the attach, and means nothing to the agent then.
    std::thread::sleep(Duration::from_millis(50));
    for container in &containers {
        rig.attach_as(container, true).unwrap();
    }
    let is_shared = || port(&rig, containers[0].host.index).unwrap().flags & PORT_SHARED != 0;
    eventually("the filter is known", is_shared);
    for container in &containers {
        rig.check(container).unwrap();
    }
    rig.exchange(0, 1, 20);
    assert!(rig.status().healthy, "{:?}", rig.status());
}

#[test]
fn what_somebody_has_put_onto_a_host_end_before_it_comes_up_is_not_passed_by_either() {
    let mut rig = Rig::start("tcx");
    let container = rig.container(2);
    rig.node.command("ip", &["link", "set", "veth2", "down"]).unwrap();
    add_foreign_filter(&rig, "veth2", "ingress", &["prio", "7"]);
    rig.attach(&container).unwrap();
    rig.node.command("ip", &["link", "set", "veth2", "up"]).unwrap();
    eventually("the filter is known", || port(&rig, container.host.index).unwrap().flags & PORT_SHARED != 0);
    rig.check(&container).unwrap();
}
