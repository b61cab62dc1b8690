//! VLANs on one bridge, on a kernel whose bridge may know none: who hears what, and with which tag on the wire.

use serde_json::{Value, json};
use shunt_dataplane::abi::PortKey;
use shunt_lab::{Network, Protocol, Sandbox};

use crate::restrictions::{drops, ports_map, tap};
use crate::stage::Stage;
use crate::wire::{BROADCAST, Mac, Wire, arp, frame, says, tag, tagged};

const GROUP: Mac = [0x01, 0x00, 0x5e, 0, 0, 7];
const NOBODY: Mac = [2, 0xbe, 0xef, 0, 0, 1];

/// A node without containers, and its network as one of layer 2: nobody is a gateway in VLANs.
fn empty() -> (Stage, Network) {
    let stage = Stage::empty();
    let network = stage.network.clone().with("isDefaultGateway", json!(false));
    (stage, network)
}

/// Adds containers, each with its own value of one key.
fn add(stage: &mut Stage, network: &Network, ports: &[(&str, &str, Value)]) {
    for (id, key, value) in ports {
        stage.network = network.clone().with(key, value.clone());
        stage.add(id);
    }
}

/// Two containers in VLAN 10, two in VLAN 20, and one in none.
fn two_vlans() -> Stage {
    let (mut stage, network) = empty();
    let ports = [("one", 10), ("two", 10), ("three", 20), ("four", 20)];
    add(&mut stage, &network, &ports.map(|(id, vid)| (id, "vlan", json!(vid))));
    stage.network = network;
    stage.add("five");
    stage
}

fn five(stage: &Stage) -> [&Sandbox; 5] {
    let [one, two, three, four, five] = &stage.sandboxes[..] else { unreachable!("five were added") };
    [one, two, three, four, five]
}

#[test]
fn containers_of_one_vlan_talk_and_all_of_it_is_the_fast_paths() {
    let stage = two_vlans();
    for (client, server) in [(0, 1), (1, 0), (2, 3)] {
        stage.assert_talk(client, server);
    }
    for id in ["one", "two", "three", "four"] {
        let port = stage.node.agent().port(id).unwrap();
        assert!(port.from.fast > 20 && port.to.fast > 20, "{port:?}");
        assert_eq!((port.from.kernel, port.to.kernel), (0, 0), "{port:?}");
        assert_eq!(port.restrictions, ["vlan"]);
    }
    assert_eq!(stage.node.agent().port("three").unwrap().vlan.untagged, 20);
}

#[test]
fn two_vlans_of_one_bridge_never_meet() {
    let stage = two_vlans();
    let [one, two, three, four, five] = five(&stage);
    let (from, same) = (tap(one), tap(two));
    let (other, others, open) = (tap(three), tap(four), tap(five));
    let node = Wire::tap(stage.node.namespace(), "cni0");
    let to_each = [other.mac(), open.mac(), node.mac(), BROADCAST, GROUP, NOBODY];
    for destination in to_each {
        let attack = frame(destination, from.mac(), "from VLAN 10");
        from.send(&attack);
        for tci in [0, 10, 20, 1, 0xe014, 4095] {
            from.send(&tagged(tci, attack.clone()));
        }
        from.send(&tagged(10, tagged(20, attack)));
    }
    from.send(&arp(BROADCAST, from.mac(), 1, [10, 77, 0, 99], [10, 77, 0, 4]));
    // The same frames do reach its own VLAN.
    same.until(|frame| says(frame, "from VLAN 10"));

    for (who, wire, friend) in [("three", &other, &others), ("four", &others, &other), ("five", &open, &node)]
    {
        friend.send(&frame(BROADCAST, friend.mac(), "the last"));
        let seen = wire.until(|frame| says(frame, "the last"));
        assert!(!seen.iter().any(|frame| frame[6..12] == from.mac()), "{who} has heard VLAN 10: {seen:02x?}");
    }
    open.send(&frame(BROADCAST, open.mac(), "to the node"));
    let seen = node.until(|frame| says(frame, "to the node"));
    assert!(!seen.iter().any(|frame| frame[6..12] == from.mac()), "the node has heard VLAN 10: {seen:02x?}");

    for reason in ["not_member", "stacked_tags"] {
        assert!(drops(&stage, "one", reason) > 0, "{reason}: {:?}", stage.node.agent().drops());
    }
    let echo = stage.echo(2, 7000);
    assert!(one.talk_to(Protocol::Tcp, &echo).is_err(), "TCP from one VLAN to the other");
}

/// An ARP question for somebody.
fn asks(frame: &[u8]) -> bool {
    frame.get(12..14) == Some(&[0x08, 0x06]) && frame.get(20..22) == Some(&[0, 1])
}

#[test]
fn two_vlans_use_the_same_addresses_and_in_each_its_own_containers_find_each_other_unheard() {
    let mut stage = Stage::empty();
    for (network, vid) in [("red", 10), ("blue", 20)] {
        let subnets = ["10.77.0.0/24", "fd77::/64"];
        let network = stage.node.network(network, "cni0", &subnets).with("isDefaultGateway", json!(false));
        stage.network = network.with("vlan", json!(vid));
        for container in 1..=3 {
            // Who is held to its address has to have it in its own VLAN.
            let held = stage.network.clone().with("ipspoofchk", json!(container == 2));
            let sandbox = Sandbox::start(&stage.lab, &stage.node, &held, &format!("{vid}-{container}"));
            stage.sandboxes.push(sandbox.unwrap());
        }
    }
    for index in 0..3 {
        assert_eq!(stage.sandboxes[index].addresses(), stage.sandboxes[index + 3].addresses());
    }
    for first in [0, 3] {
        let (speaker, bystander) = (tap(&stage.sandboxes[first]), tap(&stage.sandboxes[first + 2]));
        stage.assert_talk(first, first + 1);
        stage.assert_talk(first + 1, first);
        speaker.send(&frame(BROADCAST, speaker.mac(), "the last"));
        let heard = bystander.until(|frame| says(frame, "the last"));
        assert!(!heard.iter().any(|frame| asks(frame)), "{heard:02x?}");
    }
}

#[test]
fn nothing_of_the_kernels_bridge_reaches_a_vlan() {
    let stage = two_vlans();
    let [one, two, .., five] = five(&stage);
    let (victim, same, open) = (tap(one), tap(two), tap(five));
    let node = Wire::tap(stage.node.namespace(), "cni0");
    for destination in [victim.mac(), BROADCAST, GROUP] {
        for wire in [&open, &node] {
            let attack = frame(destination, wire.mac(), "from outside");
            wire.send(&attack);
            wire.send(&tagged(10, attack));
        }
        open.send(&frame(destination, same.mac(), "from outside"));
    }
    same.send(&frame(BROADCAST, same.mac(), "the last"));
    let seen = victim.until(|frame| says(frame, "the last"));
    assert!(!seen.iter().any(|frame| says(frame, "from outside")), "{seen:02x?}");
}

#[test]
fn tags_are_pushed_popped_and_kept_on_the_wire() {
    let (mut stage, network) = empty();
    add(
        &mut stage,
        &network,
        &[
            ("red", "vlan", json!(10)),
            ("blue", "vlan", json!(20)),
            ("trunk", "vlanTrunk", json!([{ "id": 10 }, { "minID": 20, "maxID": 30 }])),
            ("hybrid", "vlans", json!({ "untagged": 20, "tagged": [10] })),
            ("native", "vlan", json!(1)),
        ],
    );
    let [red, blue, trunk, hybrid, native] = five(&stage).map(tap);
    // From, with which tag; to whom; and the tag that it comes with.
    let ways: [(&Wire, Option<u16>, &Wire, Option<u16>); 11] = [
        (&red, None, &trunk, Some(10)),
        (&red, Some(0xa000), &trunk, Some(0xa00a)),
        (&red, None, &hybrid, Some(10)),
        (&trunk, Some(10), &red, None),
        (&trunk, Some(0xe00a), &hybrid, Some(0xe00a)),
        (&trunk, Some(20), &hybrid, None),
        (&trunk, Some(20), &blue, None),
        (&hybrid, None, &blue, None),
        (&hybrid, None, &trunk, Some(20)),
        (&trunk, None, &native, None),
        (&native, None, &trunk, None),
    ];
    for (number, (from, with, to, comes)) in ways.into_iter().enumerate() {
        for (kind, destination) in [("unicast", to.mac()), ("broadcast", BROADCAST), ("unknown", NOBODY)] {
            let text = format!("way {number} {kind}");
            let untagged = frame(destination, from.mac(), &text);
            from.send(&with.map_or(untagged.clone(), |tci| tagged(tci, untagged.clone())));
            let came = std::cell::Cell::new(None);
            to.until(|frame| {
                came.set(Some((tag(frame), frame.len())));
                says(frame, &text)
            });
            let length = untagged.len() + if comes.is_some() { 4 } else { 0 };
            assert_eq!(came.get(), Some((comes, length)), "{text}");
        }
    }
    // A service tag goes nowhere.
    let mut service = tagged(10, frame(BROADCAST, trunk.mac(), "service"));
    service[12..14].copy_from_slice(&[0x88, 0xa8]);
    trunk.send(&service);
    trunk.send(&tagged(10, frame(BROADCAST, trunk.mac(), "the last")));
    assert!(!red.until(|frame| says(frame, "the last")).iter().any(|frame| says(frame, "service")));
    assert!(drops(&stage, "trunk", "service_tag") > 0);
}

#[test]
fn isolated_containers_of_one_vlan_do_not_meet_in_it() {
    let (mut stage, network) = empty();
    let isolated = network.clone().with("portIsolation", json!(true));
    add(&mut stage, &isolated, &[("one", "vlan", json!(10)), ("two", "vlan", json!(10))]);
    add(&mut stage, &network, &[("three", "vlan", json!(10))]);
    let [one, two, three] = &stage.sandboxes[..] else { unreachable!("three were added") };
    let (from, to, open) = (tap(one), tap(two), tap(three));
    for destination in [to.mac(), BROADCAST, NOBODY] {
        from.send(&frame(destination, from.mac(), "not for the other"));
    }
    open.until(|frame| says(frame, "not for the other"));
    open.send(&frame(BROADCAST, open.mac(), "the last"));
    let seen = to.until(|frame| says(frame, "the last"));
    assert!(!seen.iter().any(|frame| says(frame, "not for the other")), "{seen:02x?}");
    stage.assert_talk(0, 2);
}

#[test]
fn a_vlan_whose_entries_or_programs_are_lost_leaks_nothing() {
    let mut stage = two_vlans();
    let [one, two, three, _, five] = five(&stage).map(tap);
    let node = Wire::tap(stage.node.namespace(), "cni0");
    let ifindex = stage.node.agent().port("one").unwrap().host_ifindex;
    let programs = stage.node.agent().status().unwrap().programs;
    // The agent would put everything back.
    stage.node.agent_mut().kill().unwrap();
    for lost in ["an entry", "programs"] {
        match lost {
            "an entry" => ports_map(&stage).remove(&PortKey { ifindex }).unwrap(),
            _ => crate::hooks::detach(&stage.node, &programs),
        }
        for destination in [two.mac(), three.mac(), five.mac(), node.mac(), BROADCAST, NOBODY] {
            one.send(&frame(destination, one.mac(), "a leak"));
            one.send(&tagged(20, frame(destination, one.mac(), "a leak")));
            five.send(&frame(one.mac(), five.mac(), "a leak"));
        }
        five.send(&frame(BROADCAST, five.mac(), "the last"));
        let heard = node.until(|frame| says(frame, "the last"));
        assert!(
            !heard.iter().any(|frame| says(frame, "a leak") && frame[6..12] == one.mac()),
            "{heard:02x?}"
        );
        for (who, wire) in [("one", &one), ("two", &two), ("three", &three)] {
            let heard = wire.until_silence();
            assert!(!heard.iter().any(|frame| says(frame, "a leak")), "{who}, without {lost}: {heard:02x?}");
        }
    }
}

#[test]
fn a_new_agent_takes_vlans_over_and_the_last_to_leave_takes_everything_along() {
    let mut stage = two_vlans();
    let programs = |stage: &Stage| stage.node.agent().status().unwrap().programs.len();
    let before = programs(&stage);
    stage.node.agent_mut().kill().unwrap();
    stage.node.restart_agent().unwrap();
    assert_eq!(programs(&stage), before);
    stage.assert_talk(0, 1);
    stage.assert_talk(3, 2);
    let port = stage.node.agent().port("one").unwrap();
    assert_eq!((port.from.kernel, port.vlan.untagged), (0, 10), "{port:?}");
    let vlan = stage.network.clone().with("vlan", json!(10));
    let one = &stage.sandboxes[0];
    vlan.check(stage.node.namespace(), one.container(), &one.attachment().result).unwrap();

    // The others still flood to each other when one in the middle has gone.
    stage.sandboxes.remove(0).delete(&stage.node, &vlan).unwrap();
    let (three, four) = (tap(&stage.sandboxes[1]), tap(&stage.sandboxes[2]));
    three.send(&frame(BROADCAST, three.mac(), "still here?"));
    four.until(|frame| says(frame, "still here?"));
    for sandbox in stage.sandboxes.drain(..) {
        sandbox.delete(&stage.node, &stage.network).unwrap();
    }
    // The programs stay loaded for the next port in VLANs.
    let left: Vec<_> = stage.left().into_iter().filter(|line| !line.contains("v2/members/")).collect();
    assert_eq!(left, Vec::<String>::new());
    let pins = stage.node.agent().bpffs().join("v2/maps");
    for map in ["MEMBERS", "TAGGED"] {
        let path = pins.join(map);
        let dump =
            shunt_lab::run("bpftool", &["-j", "map", "dump", "pinned", path.to_str().unwrap()]).unwrap();
        assert_eq!(dump.trim(), "[]", "{map}");
    }
}

/// As the members of a virtual router have (RFC 9568), and virtual machines that were copied.
#[test]
fn one_mac_address_in_two_vlans_is_two_stations_and_in_one_it_is_refused() {
    const SHARED: &str = "02:5e:00:00:01:01";
    let (mut stage, network) = empty();
    let shared = network.clone().with("runtimeConfig", json!({ "mac": SHARED }));
    for (network, id, vid) in
        [(&shared, "one", 10), (&network, "two", 10), (&shared, "three", 20), (&network, "four", 20)]
    {
        add(&mut stage, network, &[(id, "vlan", json!(vid))]);
    }
    for (client, server) in [(0, 1), (1, 0), (2, 3), (3, 2)] {
        stage.assert_talk(client, server);
    }
    let fdb = stage.node.agent().ask("fdb").unwrap();
    let places = fdb.as_array().unwrap().iter().filter(|entry| entry["mac"] == SHARED);
    let mut vids: Vec<_> = places.map(|entry| entry["vid"].as_u64().unwrap()).collect();
    vids.sort_unstable();
    assert_eq!(vids, [10, 20], "{fdb}");
    for id in ["one", "three"] {
        let port = stage.node.agent().port(id).unwrap();
        assert!(port.to.fast > 20 && port.to.kernel == 0, "{port:?}");
    }
    let late = shunt_lab::Container::create(&stage.lab, "late").unwrap();
    let error = shared.with("vlan", json!(20)).add(stage.node.namespace(), &late).unwrap_err();
    let refusal = error.downcast::<shunt_lab::cni::Refusal>().unwrap();
    assert_eq!(refusal.code, 106, "{refusal}");
    assert!(refusal.to_string().contains("three"), "{refusal}");
}
