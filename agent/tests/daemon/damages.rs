//! What can be done to a port and its bridge, one after the other, beside an agent that has to make each of it good once.

use std::thread;
use std::time::Duration;

use shunt_agent_api::{Bandwidth, BridgePort, Rate, Restrictions, Service, Vlans};

use crate::repair::damage;
use crate::rig::{BRIDGE, Rig, eventually};

/// What is done, and what the agent says of it.
type Damage = (&'static str, &'static [&'static str], &'static str);

const UNKNOWN: &str = "br0 has no static FDB entry for the container on veth2";
const OTHER: &str = "port flags of veth2 on br0 differ";
const LIMIT: &str = "the limit of what the container is sent is missing";

/// Done with these programs in the node.
const DAMAGES: [Damage; 12] = [
    ("bridge", &["fdb", "del", "02:00:00:00:00:02", "dev", "veth2", "master"], UNKNOWN),
    ("bridge", &["fdb", "flush", "dev", "veth2", "master"], UNKNOWN),
    ("bridge", &["fdb", "replace", "02:00:00:00:00:02", "dev", "veth3", "master", "static"], UNKNOWN),
    ("bridge", &["fdb", "replace", "02:00:00:00:00:02", "dev", "veth3", "master", "dynamic"], UNKNOWN),
    ("bridge", &["link", "set", "dev", "veth2", "isolated", "off"], OTHER),
    ("bridge", &["link", "set", "dev", "veth2", "locked", "off"], OTHER),
    ("bridge", &["link", "set", "dev", "veth2", "hairpin", "off"], OTHER),
    ("tc", &["qdisc", "del", "dev", "veth2", "root"], LIMIT),
    ("ip", &["addr", "flush", "dev", "br0"], "br0 has lost its address 10.88.0.1/24"),
    ("ip", &["addr", "del", "10.88.0.1/24", "dev", "br0"], "br0 has lost its address 10.88.0.1/24"),
    ("ip", &["link", "set", "veth2", "nomaster"], "veth2 is not a port of br0"),
    ("bridge", &["link", "set", "dev", "veth4", "learning", "on"], "port flags of veth4 on br0 differ"),
];

/// A port with everything that the kernel was told for it, one with nothing, and one that the programs serve alone.
fn three() -> (Rig, BridgePort) {
    let mut rig = Rig::start("auto");
    let [mut full, mut bare, mut tagged] = [2, 3, 4].map(|number| rig.container(number));
    full.restrictions = Restrictions { isolated: true, mac_check: true, ..Restrictions::default() };
    full.bandwidth.ingress = Some(Rate { rate: 100_000_000, burst: 5_000_000 });
    full.service = Service { hairpin: true, gateways: vec!["10.88.0.1/24".to_owned()], ..Service::default() };
    bare.bandwidth = Bandwidth::default();
    tagged.restrictions.vlans = Some(Vlans { untagged: Some(7), tagged: Vec::new(), default: false });
    for port in [&full, &bare, &tagged] {
        rig.attach(port).unwrap();
    }
    rig.node
        .command("bridge", &["fdb", "replace", &full.mac, "dev", "veth2", "master", "static", "sticky"])
        .unwrap();
    eventually("every port is served", || {
        let shown = ["veth2", "veth4"].map(|link| rig.ip(&["-d", "link", "show", link]));
        shown.iter().all(|shown| shown.contains("locked on")) && shown[1].contains("learning off")
    });
    // By then it has looked at each of them.
    thread::sleep(Duration::from_secs(2));
    (rig, full)
}

#[test]
fn whatever_is_done_to_a_port_or_its_bridge_is_made_good_and_told_and_counted_once() {
    let (mut rig, port) = three();
    for (program, arguments, wrong) in DAMAGES {
        println!("{program} {}", arguments.join(" "));
        damage(&mut rig, &port, wrong, |rig| drop(rig.node.command(program, arguments).unwrap()));
    }
    let stations = rig.node.command("bridge", &["fdb", "show", "br", BRIDGE]).unwrap();
    let container = stations.lines().find(|line| line.contains(&port.mac)).unwrap_or_default();
    assert!(container.contains("dev veth2") && container.contains("sticky"), "{stations}");
    let log = rig.log();
    let lines = |word: &str| log.lines().filter(|line| line.contains(word)).count();
    assert_eq!(lines("cannot be repaired"), 0, "{log}");
}

#[test]
fn a_bridge_that_learns_as_much_as_it_can_does_not_keep_the_agent_from_hearing() {
    let (mut rig, port) = three();
    // 20,000 addresses that come and go: with them in its queue the agent would have to compare everything.
    let batch: String = (0..20_000u32)
        .map(|n| format!("fdb replace 02:aa:00:00:{:02x}:{:02x} dev veth3 master dynamic\n", n >> 8, n & 255))
        .collect();
    let path = rig.lab.root().join("stations");
    std::fs::write(&path, batch).unwrap();
    rig.node.command("bridge", &["-batch", path.to_str().unwrap()]).unwrap();
    rig.node.command("bridge", &["fdb", "flush", "dev", "veth3", "master"]).unwrap();
    damage(&mut rig, &port, OTHER, |rig| {
        drop(rig.node.command("bridge", &["link", "set", "dev", "veth2", "locked", "off"]).unwrap());
    });
    assert!(!rig.log().contains("events were lost"), "{}", rig.log());
}
