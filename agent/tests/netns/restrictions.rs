//! What a restricted port may not do, it cannot do by any way: fast, flooded, or through the kernel's bridge.

use aya::maps::{HashMap, Map, MapData};
use serde_json::json;
use shunt_agent_api::PortReport;
use shunt_dataplane::abi::{Port, PortKey};
use shunt_lab::{Conversation, Echo, Node, Protocol, Sandbox};

use crate::stage::Stage;
use crate::wire::{BROADCAST, Wire, arp, frame, says};

const GATEWAY: &str = "10.77.0.1";

/// Two containers whose network sets `key`, and an open third on the same bridge.
pub(crate) fn stage(key: &str) -> Stage {
    with_three(Stage::empty(), key)
}

/// The same, and everybody hears all announcements.
pub(crate) fn stage_of_listeners(key: &str) -> Stage {
    with_three(Stage::empty_by("announcements = 'all'\n"), key)
}

fn with_three(mut stage: Stage, key: &str) -> Stage {
    let open = stage.network.clone();
    stage.network = open.clone().with(key, json!(true));
    stage.add("one");
    stage.add("two");
    stage.network = open;
    stage.add("three");
    stage.node.settle().unwrap();
    stage
}

pub(crate) fn tap(sandbox: &Sandbox) -> Wire {
    Wire::tap(sandbox.namespace(), "eth0")
}

fn v4(sandbox: &Sandbox) -> [u8; 4] {
    sandbox.attachment().ipv4().unwrap().octets()
}

pub(crate) fn drops(stage: &Stage, container: &str, reason: &str) -> u64 {
    let port = stage.node.agent().port(container).unwrap().host_ifname;
    let drops = stage.node.agent().drops().unwrap();
    drops.iter().filter(|drop| drop.port == port && drop.reason == reason).map(|drop| drop.packets).sum()
}

pub(crate) fn assert_talk_to_gateway(stage: &Stage, sandbox: &Sandbox) {
    let echo = Echo::listen(stage.node.namespace(), GATEWAY.parse().unwrap(), 7200).unwrap();
    let talk = Conversation::open(sandbox.namespace(), Protocol::Tcp, echo.address());
    talk.and_then(|mut talk| talk.chat(20, 1000)).unwrap();
}

pub(crate) fn ports_map(stage: &Stage) -> HashMap<MapData, PortKey, Port> {
    let data = MapData::from_pin(stage.node.agent().bpffs().join("v2/maps/PORTS")).unwrap();
    HashMap::try_from(Map::from_map_data(data).unwrap()).unwrap()
}

/// Takes every program away, and the agent first, which would put them back.
pub(crate) fn lose_programs(node: &mut Node) {
    let programs = node.agent().status().unwrap().programs;
    node.agent_mut().kill().unwrap();
    crate::hooks::detach(node, &programs);
}

#[test]
fn isolated_containers_reach_the_gateway_and_open_ones_but_never_each_other() {
    let stage = stage("portIsolation");
    let [one, two, three] = &stage.sandboxes[..] else { unreachable!("three were added") };
    let (from, to, open) = (tap(one), tap(two), tap(three));

    for destination in [to.mac(), BROADCAST, [0x01, 0x00, 0x5e, 0, 0, 7], [2, 0xbe, 0xef, 0, 0, 1]] {
        from.send(&frame(destination, from.mac(), "not for the other"));
    }
    from.send(&arp(BROADCAST, from.mac(), 1, v4(one), v4(two)));
    from.send(&arp(to.mac(), from.mac(), 2, v4(one), v4(two)));
    open.send(&frame(to.mac(), open.mac(), "the last"));
    let seen = to.until(|frame| says(frame, "the last"));
    assert!(seen.iter().all(|frame| frame[6..12] != from.mac()), "{seen:02x?}");
    assert!(drops(&stage, "one", "isolated") >= 2, "{:?}", stage.node.agent().drops());

    // The same broadcast reaches a port that is not isolated.
    from.send(&frame(BROADCAST, from.mac(), "to whom it may concern"));
    open.until(|frame| says(frame, "to whom it may concern"));
    stage.assert_talk(0, 2);
    stage.assert_talk(2, 1);
    assert_talk_to_gateway(&stage, one);
    assert_talk_to_gateway(&stage, two);
    assert_eq!(stage.node.agent().port("one").unwrap().restrictions, ["portIsolation"]);
    assert_eq!(stage.node.agent().port("three").unwrap().restrictions, Vec::<String>::new());
}

#[test]
fn isolated_containers_stay_apart_without_our_programs_too() {
    let mut stage = stage("portIsolation");
    let [one, two, three] = &stage.sandboxes[..] else { unreachable!("three were added") };
    let (from, to, open) = (tap(one), tap(two), tap(three));
    lose_programs(&mut stage.node);
    for destination in [to.mac(), BROADCAST] {
        from.send(&frame(destination, from.mac(), "not for the other"));
        open.send(&frame(destination, open.mac(), "the last"));
        let seen = to.until(|frame| says(frame, "the last"));
        assert!(seen.iter().all(|frame| frame[6..12] != from.mac()), "{seen:02x?}");
    }
}

#[test]
fn a_checked_container_is_heard_under_its_own_address_only() {
    let stage = stage("macspoofchk");
    let [one, two, three] = &stage.sandboxes[..] else { unreachable!("three were added") };
    let (from, to, open) = (tap(one), tap(two), tap(three));
    let bridge = Wire::tap(stage.node.namespace(), "cni0");
    let nobody = [2, 0xde, 0xad, 0, 0, 1];
    let mut sent = 0;
    for spoofed in [nobody, open.mac(), bridge.mac()] {
        for destination in [to.mac(), BROADCAST, bridge.mac(), [2, 0xbe, 0xef, 0, 0, 1]] {
            from.send(&frame(destination, spoofed, "a lie"));
            sent += 1;
        }
        from.send(&arp(BROADCAST, spoofed, 1, v4(three), v4(two)));
        sent += 1;
    }
    from.send(&frame(BROADCAST, from.mac(), "the truth"));
    for (who, wire) in [("two", &to), ("three", &open), ("the node", &bridge)] {
        let seen = wire.until(|frame| says(frame, "the truth"));
        assert!(!seen.iter().any(|frame| says(frame, "a lie")), "{who} has heard a lie");
    }
    assert!(drops(&stage, "one", "source_spoofed") >= sent, "{:?}", stage.node.agent().drops());
    // The kernel's bridge has not learned where the stranger is either.
    let learned = stage.node.namespace().command("bridge", &["fdb", "show", "br", "cni0"]).unwrap();
    assert!(!learned.contains("02:de:ad"), "{learned}");
    stage.assert_talk(0, 1);
    stage.assert_talk(1, 2);
    assert_talk_to_gateway(&stage, one);
}

#[test]
fn a_restricted_port_whose_entry_is_lost_is_shut_until_an_agent_puts_it_back() {
    let mut stage = stage("macspoofchk");
    let [one, two, three] = &stage.sandboxes[..] else { unreachable!("three were added") };
    let echo = stage.echo(1, 7000);
    let mut talk = one.talk_to(Protocol::Udp, &echo).unwrap();
    let mut bystanders = three.talk_to(Protocol::Udp, &echo).unwrap();
    talk.chat(50, 1000).unwrap();
    let PortReport { host_ifindex, .. } = stage.node.agent().port("one").unwrap();
    stage.node.agent_mut().kill().unwrap();
    ports_map(&stage).remove(&PortKey { ifindex: host_ifindex }).unwrap();

    talk.say(1000).unwrap_err();
    let (from, to, open) = (tap(one), tap(two), tap(three));
    for destination in [to.mac(), BROADCAST] {
        from.send(&frame(destination, from.mac(), "from a shut port"));
        open.send(&frame(destination, open.mac(), "the last"));
        let seen = to.until(|frame| says(frame, "the last"));
        assert!(!seen.iter().any(|frame| says(frame, "from a shut port")), "{seen:02x?}");
    }
    open.send(&frame(BROADCAST, open.mac(), "to a shut port"));
    to.until(|frame| says(frame, "to a shut port"));
    // Everybody else goes on.
    bystanders.chat(20, 1000).unwrap();
    stage.node.restart_agent().unwrap();
    assert!(drops(&stage, "one", "no_port") >= 3, "{:?}", stage.node.agent().drops());
    stage.assert_talk(0, 1);
}

#[test]
fn a_new_agent_takes_restricted_ports_over_with_their_programs() {
    let mut stage = stage("portIsolation");
    let programs = |stage: &Stage| {
        let mut programs = stage.node.agent().status().unwrap().programs;
        programs.sort_by(|one, other| (&one.ifname, &one.name).cmp(&(&other.ifname, &other.name)));
        programs
    };
    let before = programs(&stage);
    let ids = |container: &str| -> Vec<u32> {
        let port = stage.node.agent().port(container).unwrap().host_ifname;
        before.iter().filter(|program| program.ifname == port).map(|program| program.id).collect()
    };
    assert_eq!(ids("one"), ids("two"));
    assert_ne!(ids("one"), ids("three"), "restricted ports have programs of their own");
    stage.node.agent_mut().kill().unwrap();
    stage.node.restart_agent().unwrap();
    assert_eq!(programs(&stage), before);
    assert_eq!(stage.node.agent().port("two").unwrap().restrictions, ["portIsolation"]);
    let echo = stage.echo(1, 7000);
    assert!(stage.sandboxes[0].talk_to(Protocol::Tcp, &echo).is_err());
    stage.assert_talk(0, 2);
}

#[test]
fn a_container_held_to_its_addresses_cannot_take_anothers() {
    let stage = stage("ipspoofchk");
    let [one, two, three] = &stage.sandboxes[..] else { unreachable!("three were added") };
    let (from, to) = (tap(one), tap(two));
    for destination in [BROADCAST, to.mac()] {
        from.send(&arp(destination, from.mac(), 2, v4(three), v4(two)));
    }
    from.send(&frame(to.mac(), from.mac(), "the truth"));
    let seen = to.until(|frame| says(frame, "the truth"));
    assert!(seen.iter().all(|frame| frame.get(28..32) != Some(&v4(three)[..])), "a lie was heard");
    assert!(drops(&stage, "one", "address_spoofed") >= 2, "{:?}", stage.node.agent().drops());
    stage.assert_talk(0, 1);
    stage.assert_talk(2, 0);
    assert_talk_to_gateway(&stage, one);
    assert_eq!(stage.node.agent().port("one").unwrap().restrictions, ["ipspoofchk"]);
}
