//! What somebody takes from the programs beside ports and bridges is made good like everything else.

use std::fs;
use std::time::Duration;

use shunt_agent_api::{BridgePort, PortMapping, Protocol};

use crate::kernel;
use crate::repair::damage;
use crate::rig::{Rig, eventually};

/// A node with a way out, and a container that is masqueraded and has a host port.
fn translated() -> (Rig, BridgePort) {
    let (mut rig, port) = outward();
    let other = rig.container(3);
    rig.attach(&port).unwrap();
    rig.attach(&other).unwrap();
    eventually("the node masquerades", || kernel::outlets(&rig) == 1);
    // By then the agent has looked at all of it.
    std::thread::sleep(Duration::from_secs(2));
    (rig, port)
}

/// A node with a way out, and a container that will be.
fn outward() -> (Rig, BridgePort) {
    let mut rig = Rig::start("auto");
    rig.ip(&["link", "add", "out0", "type", "veth", "peer", "name", "out1"]);
    rig.ip(&["addr", "add", "192.0.2.1/24", "dev", "out0"]);
    for end in ["out0", "out1"] {
        rig.ip(&["link", "set", end, "up"]);
    }
    let mapping = PortMapping {
        protocol: Protocol::Tcp,
        host_ip: None,
        host_port: 8080,
        container_port: 80,
        masquerade: false,
        keeps_source: false,
    };
    let masquerade = vec!["10.88.0.0/24".to_owned()];
    let port = BridgePort { masquerade, mappings: vec![mapping], ..rig.container(2) };
    (rig, port)
}

#[test]
fn an_interface_that_masquerades_is_put_back_told_and_counted_once() {
    let (mut rig, port) = translated();
    damage(&mut rig, &port, "in OUTLETS is missing", kernel::remove_outlets);
    assert_eq!(kernel::outlets(&rig), 1);
}

#[test]
fn the_programs_on_sockets_are_put_back_told_and_counted_once() {
    let (mut rig, port) = translated();
    let pins = rig.files(rig.pin("sockets"));
    assert!(!pins.is_empty());
    damage(&mut rig, &port, "programs were detached from the cgroup", |rig| {
        for name in rig.files(rig.pin("sockets")) {
            fs::remove_file(rig.pin("sockets").join(name)).unwrap();
        }
    });
    assert_eq!(rig.files(rig.pin("sockets")), pins);
}

#[test]
fn nat_ingress_that_cannot_be_attached_is_attached_once_it_can_be() {
    let (rig, port) = outward();
    let index = rig.interface("out0").index;
    // What is in a pin's place is in the way of the program.
    let obstacle = rig.pin("links").join(format!("from_wire-{index}"));
    fs::create_dir(&obstacle).unwrap();
    rig.attach(&port).unwrap();
    let name = "NAT ingress of out0";
    let warned = || rig.status().warnings.iter().filter(|warning| warning.contains(name)).count();
    eventually("the status says so", || warned() == 1);
    // An address that comes and goes adds nothing to it.
    for verb in ["add", "del", "add", "del"] {
        rig.ip(&["addr", verb, "192.0.2.77/24", "dev", "out0"]);
    }
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(warned(), 1, "{:?}", rig.status().warnings);
    assert!(rig.status().healthy, "{:?}", rig.status().reasons);
    fs::remove_dir(&obstacle).unwrap();
    eventually("it is attached", || obstacle.is_file() && warned() == 0);
}
