//! What somebody takes from the programs beside ports and bridges is made good like everything else.

use std::fs;
use std::time::Duration;

use shunt_agent_api::{BridgePort, PortMapping, Protocol};

use crate::kernel;
use crate::repair::damage;
use crate::rig::{Rig, eventually};

/// A node with a way out, and a container that is masqueraded and has a host port.
fn translated() -> (Rig, BridgePort) {
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
    };
    let masquerade = vec!["10.88.0.0/24".to_owned()];
    let port = BridgePort { masquerade, mappings: vec![mapping], ..rig.container(2) };
    let other = rig.container(3);
    rig.attach(&port).unwrap();
    rig.attach(&other).unwrap();
    eventually("the node masquerades", || kernel::outlets(&rig) == 1);
    // By then the agent has looked at all of it.
    std::thread::sleep(Duration::from_secs(2));
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
