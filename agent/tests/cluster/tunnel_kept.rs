//! The VXLAN device and what it has are kept: what somebody deletes, nodes that change, an agent that starts again, an uninstall.

use shunt_lab::{Conversation, Protocol};

use crate::tunnel::{DEVICE, VXLAN, talk, two};
use crate::world::Member;

/// The station of a node's device.
fn station(address: &str) -> String {
    let octets: Vec<u8> = address.split('.').map(|octet| octet.parse().unwrap()).collect();
    octets.iter().fold("52:04".to_owned(), |mac, octet| format!("{mac}:{octet:02x}"))
}

/// What a command says in the node; nothing while the device is not there.
fn shown(member: &Member, program: &str, arguments: &[&str]) -> String {
    member.node.namespace().command(program, arguments).unwrap_or_default()
}

fn stations(member: &Member) -> String {
    shown(member, "bridge", &["fdb", "show", "dev", DEVICE])
}

fn is_whole(one: &Member, other: &Member) -> bool {
    let device = shown(one, "ip", &["-o", "-d", "link", "show", DEVICE]);
    let has = |text: &str| device.contains(text);
    let mac = station(&other.addresses[0]);
    let neighbours = |family| shown(one, "ip", &[family, "neigh", "show", "dev", DEVICE, "nud", "permanent"]);
    let address = format!("{}/32", one.pod_cidrs[0].trim_end_matches("/24"));
    has(",UP")
        && ["mtu 1450", "id 83", "dstport 8472", "nolearning"].into_iter().all(has)
        && has(&format!("local {}", one.addresses[0]))
        && has(&station(&one.addresses[0]))
        && stations(one).contains(&format!("{mac} dst {}", other.addresses[0]))
        && ["-4", "-6"].into_iter().all(|family| neighbours(family).contains(&mac))
        && shown(one, "ip", &["address", "show", "dev", DEVICE]).contains(&address)
        && one.routes() == Member::tunnels_to(other)
}

#[test]
fn what_somebody_deletes_comes_back_and_what_others_have_stays() {
    let mut world = two(VXLAN);
    let pods = [world.pod(0, "one"), world.pod(1, "two")];
    let [a, b] = [0, 1].map(|index| &world.members[index]);
    a.until("it is whole", || is_whole(a, b));
    let mac = station(&b.addresses[0]);
    let bridge = |arguments: &[&str]| a.node.namespace().command("bridge", arguments).unwrap();
    // Another program's, and stale ones of an earlier agent.
    bridge(&["fdb", "add", "02:00:00:00:00:07", "dev", DEVICE, "dst", "10.99.0.7"]);
    bridge(&["fdb", "add", &station("10.99.0.77"), "dev", DEVICE, "dst", "10.99.0.77"]);
    a.ip(&["neigh", "add", "10.250.0.7", "lladdr", "02:00:00:00:00:07", "dev", DEVICE]);
    a.ip(&["neigh", "add", "10.244.77.0", "lladdr", &station("10.99.0.77"), "dev", DEVICE]);
    a.ip(&["route", "add", "10.250.0.0/24", "via", "10.250.0.7", "dev", DEVICE, "onlink", "proto", "static"]);
    bridge(&["fdb", "del", &mac, "dev", DEVICE, "dst", &b.addresses[0]]);
    a.ip(&["neigh", "del", "10.244.2.0", "dev", DEVICE]);
    a.ip(&["route", "del", &b.pod_cidrs[0], "proto", "83"]);
    a.ip(&["link", "set", DEVICE, "mtu", "1300"]);
    let is_swept = || {
        !stations(a).contains(&station("10.99.0.77"))
            && !a.ip(&["neigh", "show", "dev", DEVICE]).contains("10.244.77.0")
    };
    a.until("it is whole again", || is_whole(a, b) && is_swept());
    assert!(stations(a).contains("02:00:00:00:00:07 dst 10.99.0.7"), "{}", stations(a));
    assert!(a.ip(&["neigh", "show", "dev", DEVICE]).contains("10.250.0.7"));
    assert!(a.ip(&["route", "show"]).contains("10.250.0.0/24 via 10.250.0.7"));
    talk(&world, pods[0], pods[1]);
    let [a, b] = [0, 1].map(|index| &world.members[index]);
    a.ip(&["address", "del", "10.244.1.0/32", "dev", DEVICE]);
    a.ip(&["link", "set", DEVICE, "address", "02:00:00:00:00:09"]);
    a.ip(&["link", "set", DEVICE, "down"]);
    a.until("it is whole again", || is_whole(a, b));
    a.ip(&["link", "del", DEVICE]);
    a.until("it is made anew", || is_whole(a, b));
    talk(&world, pods[1], pods[0]);
}

#[test]
fn a_node_that_changes_its_address_is_reached_by_the_new_one() {
    let mut world = two(VXLAN);
    let pods = [world.pod(0, "one"), world.pod(1, "two")];
    let old = station(&world.members[1].addresses[0]);
    world.members[1].ip(&["address", "del", "10.99.0.2/24", "dev", "up0"]);
    world.members[1].ip(&["address", "add", "10.99.0.77/24", "dev", "up0"]);
    world.members[1].addresses[0] = "10.99.0.77".to_owned();
    world.join(1);
    let [a, b] = [0, 1].map(|index| &world.members[index]);
    for (one, other) in [(a, b), (b, a)] {
        one.until("it is whole", || is_whole(one, other) && !stations(one).contains(&old));
    }
    talk(&world, pods[0], pods[1]);
}

#[test]
fn an_agent_that_starts_again_loses_nothing() {
    let mut world = two(VXLAN);
    let pods = [world.pod(0, "one"), world.pod(1, "two")];
    let echo = world.sandboxes[pods[1]].echo(world.address(pods[1], true), 7000).unwrap();
    let inside = world.sandboxes[pods[0]].namespace();
    let mut talks =
        [Protocol::Tcp, Protocol::Udp].map(|one| Conversation::open(inside, one, echo.address()).unwrap());
    world.server.go_away();
    let index =
        |member: &Member| member.ip(&["-o", "link", "show", DEVICE]).split(':').next().unwrap().to_owned();
    let a = &mut world.members[0];
    let (before, was) = (index(a), stations(a));
    a.node.agent_mut().kill().unwrap();
    talks.iter_mut().for_each(|talk| talk.chat(5, 1400).unwrap());
    a.node.restart_agent().unwrap();
    let [a, b] = [0, 1].map(|index| &world.members[index]);
    a.until("it has looked", || a.warns("the nodes are not watched"));
    assert_eq!((index(a), stations(a)), (before, was), "it is the same device");
    assert!(is_whole(a, b));
    talks.iter_mut().for_each(|talk| talk.chat(5, 1400).unwrap());
}

#[test]
fn another_name_leaves_no_device_of_the_old_one_and_an_uninstall_none() {
    let mut world = two(VXLAN);
    let file = world.members[0].directory.join("agent.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let renamed = format!("{text}[cluster.vxlan]\ndevice = 'other0'\n");
    std::fs::write(&file, renamed).unwrap();
    world.members[0].node.agent_mut().kill().unwrap();
    world.members[0].node.restart_agent().unwrap();
    let [a, b] = [0, 1].map(|index| &world.members[index]);
    let links = || a.ip(&["-o", "link"]);
    a.until("it has the new name", || links().contains(": other0:") && !links().contains(": shunt-vxlan:"));
    a.until("it leads there", || a.ip(&["route", "show", &b.pod_cidrs[0]]).contains("dev other0"));
    world.uninstall(0);
    assert!(!links().contains("vxlan") && !links().contains(": other0:"), "{}", links());
    assert_eq!(a.routes(), Vec::<String>::new());
}

#[test]
fn what_leads_to_pods_stays_while_a_nodes_address_is_gone() {
    let mut world = two(VXLAN);
    let pods = [world.pod(0, "one"), world.pod(1, "two")];
    let [a, b] = [0, 1].map(|index| &world.members[index]);
    let address = format!("{}/24", a.addresses[0]);
    a.ip(&["address", "del", &address, "dev", "up0"]);
    a.until("it is told", || a.warns(&format!("the node {} cannot be reached", b.addresses[0])));
    assert_eq!(a.routes(), Member::tunnels_to(b), "nothing leaves by another way");
    a.ip(&["address", "add", &address, "dev", "up0"]);
    a.until("it is as before", || is_whole(a, b) && !a.warns("cannot be reached"));
    talk(&world, pods[0], pods[1]);
}
