//! Damage that somebody does to attachments, and how it is made good.

use std::fs;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use shunt_agent::datapath::attach::hook::Program;
use shunt_agent::datapath::layout::MAPS;
use shunt_agent_api::{BridgePort, EventKind, Restrictions};
use shunt_lab::measured;

use crate::events::Subscriber;
use crate::kernel::{self, container_mac};
use crate::rig::{BRIDGE, Rig, eventually};

/// How many seconds a repair may take. A machine that stands still for a while is no failure of the agent's: then the damage
/// is done again, twice at most.
const AT_MOST: f64 = 2.0;

/// Does the damage, and waits until the agent has made it good, told and counted it once, and packets pass.
pub(crate) fn damage(rig: &mut Rig, port: &BridgePort, what: &str, damage: impl Fn(&Rig)) {
    let took = measured(&(0.0..AT_MOST), || damage_once(rig, port, what, &damage).as_secs_f64());
    assert!(took < AT_MOST, "{what}: {took} s, each time:\n{}", rig.log());
}

fn damage_once(rig: &Rig, port: &BridgePort, what: &str, damage: impl Fn(&Rig)) -> Duration {
    let subscriber = Subscriber::new(rig);
    let before = rig.status().repairs;
    damage(rig);
    let begun = Instant::now();
    let heard = subscriber.hear(EventKind::Repair);
    let took = begun.elapsed();
    println!("{what}: repaired in {took:?}");
    assert!(heard.detail.contains(what), "{what}: {heard:?}");
    rig.check(port).unwrap();
    assert_eq!(rig.status().repairs, before + 1, "{}", rig.log());
    rig.exchange(0, 1, 3);
    assert!(rig.status().healthy, "{:?}", rig.status().reasons);
    assert!(rig.log().contains("repaired"), "{}", rig.log());
    took
}

fn two(attach: &str) -> (Rig, BridgePort) {
    two_restricted(attach, &Restrictions::default())
}

fn two_restricted(attach: &str, restrictions: &Restrictions) -> (Rig, BridgePort) {
    let mut rig = Rig::start(attach);
    let [first, second] =
        [2, 3].map(|number| BridgePort { restrictions: restrictions.clone(), ..rig.container(number) });
    rig.attach(&first).unwrap();
    rig.attach(&second).unwrap();
    // The agent has to have seen the ports in service before it puts them back there.
    std::thread::sleep(Duration::from_secs(2));
    (rig, first)
}

#[test]
fn a_port_that_is_taken_off_its_bridge_is_put_back_as_it_was() {
    let (mut rig, port) = two("auto");
    let flags = ["link", "set", "dev", "veth2", "hairpin", "on", "isolated", "on", "locked", "on"];
    rig.node.command("bridge", &flags).unwrap();
    std::thread::sleep(Duration::from_secs(2));
    damage(&mut rig, &port, "veth2 is not a port of br0", |rig| {
        rig.ip(&["link", "set", "veth2", "nomaster"]);
    });
    let shown = rig.ip(&["-d", "link", "show", "veth2"]);
    for flag in ["hairpin on", "isolated on", "locked on"] {
        assert!(shown.contains(flag), "{flag}: {shown}");
    }
    let stations = rig.node.command("bridge", &["fdb", "show", "dev", "veth2"]).unwrap();
    let container = stations.lines().find(|line| line.contains(&port.mac)).unwrap_or_default();
    assert!(container.contains("extern_learn"), "{stations}");
}

#[test]
fn a_port_that_is_given_to_another_bridge_is_taken_back() {
    let (mut rig, port) = two("auto");
    rig.ip(&["link", "add", "br1", "type", "bridge"]);
    damage(&mut rig, &port, "veth2 is not a port of br0", |rig| {
        rig.ip(&["link", "set", "veth2", "master", "br1"]);
    });
}

#[test]
fn a_port_that_was_never_in_service_is_left_to_who_makes_it() {
    let mut rig = Rig::start("auto");
    let port = rig.container(2);
    rig.ip(&["link", "set", "veth2", "nomaster"]);
    rig.attach(&port).unwrap();
    std::thread::sleep(Duration::from_secs(3));
    assert!(!rig.ip(&["link", "show", "veth2"]).contains("master"));
    assert_eq!(rig.status().repairs, 0);
    assert!(rig.status().healthy);
}

#[test]
fn a_link_that_is_unpinned_is_attached_again() {
    for name in ["from_container", "to_container"] {
        let (mut rig, port) = two("tcx");
        let index = port.host.index;
        damage(&mut rig, &port, name, |rig| {
            fs::remove_file(rig.pin(&format!("links/{name}-{index}"))).unwrap();
        });
    }
}

#[test]
fn a_link_that_is_detached_is_attached_again_and_its_loss_is_told() {
    let (mut rig, port) = two("tcx");
    let pin = rig.pin(&format!("links/from_container-{}", port.host.index));
    let subscriber = Subscriber::new(&rig);
    damage(&mut rig, &port, "from_container", |_| {
        shunt_lab::run("bpftool", &["link", "detach", "pinned", pin.to_str().unwrap()]).unwrap();
    });
    assert_eq!(subscriber.hear(EventKind::ProgramLost).key, Some(port.key));
}

#[test]
fn filters_that_go_with_their_qdisc_are_put_back() {
    let (mut rig, port) = two("clsact");
    damage(&mut rig, &port, "from_container", |rig| {
        rig.node.command("tc", &["qdisc", "del", "dev", "veth2", "clsact"]).unwrap();
    });
    damage(&mut rig, &port, "to_container", |rig| {
        rig.node.command("tc", &["filter", "del", "dev", "veth2", "egress"]).unwrap();
    });
}

#[test]
fn the_bridges_program_is_attached_again() {
    for (attach, undo) in [("tcx", false), ("clsact", true)] {
        let (mut rig, port) = two(attach);
        let index = port.bridge.index;
        damage(&mut rig, &port, "from_host", |rig| {
            if undo {
                rig.node.command("tc", &["qdisc", "del", "dev", BRIDGE, "clsact"]).unwrap();
            } else {
                fs::remove_file(rig.pin(&format!("links/from_host-{index}"))).unwrap();
            }
        });
    }
}

#[test]
fn a_restricted_port_gets_its_own_programs_back_and_they_are_the_restricted_ones() {
    let restrictions = Restrictions { mac_check: true, ..Restrictions::default() };
    for attach in ["tcx", "clsact"] {
        let (mut rig, port) = two_restricted(attach, &restrictions);
        let index = port.host.index;
        let before = rig.status().programs;
        damage(&mut rig, &port, "from_container", |rig| {
            if attach == "tcx" {
                fs::remove_file(rig.pin(&format!("links/from_container-{index}"))).unwrap();
            } else {
                rig.node.command("tc", &["filter", "del", "dev", "veth2", "ingress"]).unwrap();
            }
        });
        assert_eq!(rig.status().programs, before);
        damage(&mut rig, &port, "restricted/from_container is gone", |rig| {
            fs::remove_file(rig.pin("restricted/from_container")).unwrap();
        });
        rig.containers[0].command("ip", &["link", "set", "eth0", "address", "02:00:00:00:00:99"]).unwrap();
        let spoofed = || rig.drops("source_spoofed");
        let none = spoofed();
        let liar = rig.containers[0].enter(|| UdpSocket::bind("0.0.0.0:0").unwrap()).unwrap();
        liar.set_broadcast(true).unwrap();
        liar.send_to(b"a lie", "10.88.0.255:9").unwrap();
        eventually("its lies are dropped", || spoofed() > none);
    }
}

#[test]
fn pins_of_maps_and_programs_come_back_and_the_next_agent_finds_them() {
    let (mut rig, port) = two("auto");
    damage(&mut rig, &port, "maps/PORTS is gone", |rig| fs::remove_file(rig.pin("maps/PORTS")).unwrap());
    damage(&mut rig, &port, "programs", |rig| fs::remove_dir_all(rig.pin("programs")).unwrap());
    damage(&mut rig, &port, "maps", |rig| fs::remove_dir_all(rig.pin("maps")).unwrap());
    eventually("every pin is there", || {
        rig.files(rig.pin("maps")).len() == MAPS.len()
            && rig.files(rig.pin("programs")).len() == Program::OF_NODES.len()
    });
    let sent = rig.ports()[0].from.packets;
    assert!(sent > 0);
    rig.kill();
    rig.run("auto");
    assert!(rig.ports()[0].from.packets >= sent, "the counters went on");
    assert!(!rig.log().contains("attached again"), "{}", rig.log());
    rig.exchange(0, 1, 3);
}

#[test]
fn map_entries_that_are_removed_are_written_again() {
    let (mut rig, port) = two("auto");
    let (bridge, host) = (port.bridge.index, port.host.index);
    damage(&mut rig, &port, "veth2 in PORTS is missing", |rig| kernel::remove_port(rig, host));
    damage(&mut rig, &port, "br0 in PORTS is missing", |rig| kernel::remove_port(rig, bridge));
    damage(&mut rig, &port, "in FDB is missing", |rig| {
        kernel::remove_station(rig, bridge, container_mac(2));
    });
    damage(&mut rig, &port, "br0 in FDB is missing", |rig| kernel::remove_own_station(rig, bridge));
    rig.detach(&port).unwrap();
    kernel::remove_addresses(&rig);
    eventually("the other's addresses are there again", || rig.status().repairs == 5);
}

#[test]
fn a_state_file_that_is_removed_is_written_again() {
    let (mut rig, port) = two("auto");
    let path = rig.state().join("attachments/net@c2@eth0.json");
    damage(&mut rig, &port, "state file", |_| fs::remove_file(&path).unwrap());
    assert!(path.exists());
}

#[test]
fn a_link_that_somebody_sets_down_stays_down() {
    let (rig, port) = two("auto");
    let subscriber = Subscriber::new(&rig);
    rig.ip(&["link", "set", "veth2", "down"]);
    assert_eq!(subscriber.hear(EventKind::LinkDown).key, Some(port.key.clone()));
    std::thread::sleep(Duration::from_secs(2));
    assert!(rig.ip(&["link", "show", "veth2"]).contains("state DOWN"));
    assert_eq!(rig.status().repairs, 0);
    rig.check(&port).unwrap();
}
