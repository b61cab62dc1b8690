//! What the kernel bridge was told: of its ports, of its addresses, and that it exists.

use std::fs;
use std::net::UdpSocket;
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;
use shunt_agent_api::{BridgePort, EventKind, Reply, Request, Restrictions, Service};
use shunt_lab::uninterrupted;

use crate::events::Subscriber;
use crate::repair::damage;
use crate::rig::{BRIDGE, Rig, eventually};

const GATEWAY: &str = "10.88.0.1/24";

fn gateway() -> Service {
    Service { gateways: vec![GATEWAY.to_owned()], ..Service::default() }
}

/// Two ports of a bridge with a gateway.
fn two_behind_a_gateway() -> (Rig, [BridgePort; 2]) {
    let mut rig = Rig::start("auto");
    let ports = [2, 3].map(|number| BridgePort { service: gateway(), ..rig.container(number) });
    for port in &ports {
        rig.attach(port).unwrap();
    }
    // The agent has to have seen the ports in service before it puts them back there.
    thread::sleep(Duration::from_secs(2));
    (rig, ports)
}

/// The node answers a container on the gateway's address.
fn assert_gateway_answers(rig: &Rig) {
    let node = rig.node.enter(|| UdpSocket::bind(("10.88.0.1", 7001)).unwrap()).unwrap();
    let container = rig.containers[0].enter(|| UdpSocket::bind(("0.0.0.0", 0)).unwrap()).unwrap();
    for socket in [&node, &container] {
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    }
    let mut bytes = [0; 8];
    container.send_to(b"question", ("10.88.0.1", 7001)).unwrap();
    let (_, back) = uninterrupted(|| node.recv_from(&mut bytes)).unwrap();
    node.send_to(b"answer", back).unwrap();
    assert_eq!(uninterrupted(|| container.recv(&mut bytes)).unwrap(), 6);
}

#[test]
fn a_port_is_what_it_was_told_to_be_and_may_be_more() {
    let mut rig = Rig::start("auto");
    let (mut port, other) = (rig.container(2), rig.container(3));
    port.service.hairpin = true;
    port.restrictions = Restrictions { isolated: true, ..Restrictions::default() };
    let set = |rig: &Rig, flag: &str, value: &str| {
        rig.node.command("bridge", &["link", "set", "dev", "veth2", flag, value]).unwrap();
    };
    for flag in ["hairpin", "isolated"] {
        set(&rig, flag, "on");
    }
    rig.attach(&port).unwrap();
    rig.attach(&other).unwrap();
    for flag in ["hairpin", "isolated"] {
        damage(&mut rig, &port, "port flags of veth2 on br0 differ", |rig| set(rig, flag, "off"));
        let shown = rig.ip(&["-d", "link", "show", "veth2"]);
        assert!(shown.contains("hairpin on") && shown.contains("isolated on"), "{shown}");
        thread::sleep(Duration::from_secs(1));
    }
    let repairs = rig.status().repairs;
    rig.node.command("bridge", &["link", "set", "dev", "veth3", "hairpin", "on"]).unwrap();
    thread::sleep(Duration::from_secs(2));
    assert!(rig.ip(&["-d", "link", "show", "veth3"]).contains("hairpin on"));
    assert_eq!(rig.status().repairs, repairs);
}

#[test]
fn a_gateway_address_that_is_removed_comes_back_and_one_that_is_replaced_does_not() {
    let (mut rig, [port, _]) = two_behind_a_gateway();
    damage(&mut rig, &port, "br0 has lost its address 10.88.0.1/24", |rig| {
        rig.ip(&["addr", "del", GATEWAY, "dev", BRIDGE]);
    });
    assert_gateway_answers(&rig);
    let repairs = rig.status().repairs;
    rig.ip(&["addr", "add", "10.99.0.9/24", "dev", BRIDGE]);
    rig.ip(&["addr", "del", GATEWAY, "dev", BRIDGE]);
    thread::sleep(Duration::from_secs(3));
    assert!(!rig.ip(&["addr", "show", "dev", BRIDGE]).contains(GATEWAY));
    assert_eq!(rig.status().repairs, repairs);
}

#[test]
fn a_bridge_that_is_deleted_is_made_anew_as_it_was_with_its_ports() {
    let (rig, ports) = two_behind_a_gateway();
    rig.ip(&["link", "set", BRIDGE, "alias", "the plugin's"]);
    rig.exchange(0, 1, 3);
    let address = || {
        let shown = rig.ip(&["link", "show", BRIDGE]);
        shown.split_whitespace().skip_while(|word| *word != "link/ether").nth(1).unwrap().to_owned()
    };
    let before = address();
    let subscriber = Subscriber::new(&rig);
    rig.ip(&["link", "del", BRIDGE]);
    for _ in &ports {
        assert!(subscriber.hear(EventKind::Repair).detail.contains("its bridge br0 was deleted"));
    }
    assert_eq!(address(), before);
    assert!(rig.ip(&["addr", "show", "dev", BRIDGE]).contains(GATEWAY));
    assert!(rig.ip(&["link", "show", BRIDGE]).contains("alias the plugin's"));
    rig.exchange(0, 1, 3);
    assert_gateway_answers(&rig);
    for port in ports {
        rig.check(&BridgePort { bridge: rig.interface(BRIDGE), ..port }).unwrap();
    }
    assert!(rig.status().healthy, "{:?}", rig.status().reasons);
    assert_eq!(rig.status().repairs, 2);
}

#[test]
fn what_a_bridge_was_told_just_before_it_was_deleted_is_not_forgotten() {
    let (rig, _ports) = two_behind_a_gateway();
    let subscriber = Subscriber::new(&rig);
    // It hears of both at once, when the bridge is gone.
    rig.signal(Signal::SIGSTOP);
    rig.ip(&["link", "set", BRIDGE, "alias", "the plugin's"]);
    rig.ip(&["link", "del", BRIDGE]);
    rig.signal(Signal::SIGCONT);
    assert!(subscriber.hear(EventKind::Repair).detail.contains("its bridge br0 was deleted"));
    assert!(rig.ip(&["link", "show", BRIDGE]).contains("alias the plugin's"));
}

#[test]
fn a_bridge_with_a_spanning_tree_is_not_made_anew_without_one() {
    let (rig, ports) = two_behind_a_gateway();
    rig.ip(&["link", "set", BRIDGE, "type", "bridge", "stp_state", "1"]);
    // The agent has heard of it.
    thread::sleep(Duration::from_secs(1));
    rig.ip(&["link", "del", BRIDGE]);
    let complains = |rig: &Rig| rig.status().reasons.iter().any(|reason| reason.contains("a spanning tree"));
    eventually("it says why not", || complains(&rig));
    assert_eq!(rig.status().repairs, 0);
    rig.ip(&["link", "add", BRIDGE, "type", "bridge", "stp_state", "1"]);
    rig.ip(&["link", "set", BRIDGE, "up"]);
    eventually("it is healthy", || rig.status().healthy);
    assert_eq!(rig.status().repairs, ports.len() as u64);
}

#[test]
fn a_bridge_that_is_deleted_while_no_agent_runs_is_made_anew_by_the_next() {
    let (mut rig, ports) = two_behind_a_gateway();
    rig.kill();
    rig.ip(&["link", "del", BRIDGE]);
    // It can only be made where its name is free.
    rig.ip(&["link", "add", BRIDGE, "type", "veth", "peer", "name", "other"]);
    rig.run("auto");
    let complains = |rig: &Rig| {
        rig.status().reasons.iter().any(|reason| reason.contains("a link that is no bridge has its name"))
    };
    eventually("it says what is in the way", || complains(&rig));
    rig.ip(&["link", "del", BRIDGE]);
    eventually("it is healthy", || rig.status().healthy);
    rig.exchange(0, 1, 3);
    assert_gateway_answers(&rig);
    for port in &ports {
        rig.detach(&BridgePort { bridge: rig.interface(BRIDGE), ..port.clone() }).unwrap();
    }
    rig.assert_empty();
}

#[test]
fn what_waits_for_its_bridge_can_be_detached_and_collected() {
    let (mut rig, [port, other]) = two_behind_a_gateway();
    rig.kill();
    rig.ip(&["link", "del", BRIDGE]);
    rig.ip(&["link", "add", BRIDGE, "type", "veth", "peer", "name", "other"]);
    rig.run("auto");
    assert_eq!(fs::read_dir(rig.state().join("attachments")).unwrap().count(), 2);
    assert_eq!(rig.detach(&port).unwrap().key, port.key);
    let Ok(Reply::Collected(collected)) =
        rig.ask(Request::Collect { network: "net".into(), valid: Vec::new() })
    else {
        panic!("not collected")
    };
    assert_eq!(collected.removed, [other]);
    eventually("it is healthy", || rig.status().healthy);
    rig.assert_empty();
}
