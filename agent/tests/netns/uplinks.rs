//! A bridge with an uplink: the wire comes into containers, tagged and untagged, and who may be an uplink.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shunt_lab::cni::Refusal;
use shunt_lab::{Container, Conversation, Echo, Namespace, Protocol, patience};

use crate::restrictions::tap;
use crate::stage::Stage;
use crate::wire::{BROADCAST, Mac, Wire, frame, says, tag, tagged};

/// How long the agent may take to put something back.
const PATIENCE: Duration = Duration::from_secs(10);

const NOBODY: Mac = [2, 0xbe, 0xef, 0, 0, 1];

/// A node whose interface `up0` leads to somebody outside, and a network of layer 2 with it as its uplink.
pub(crate) fn stage() -> (Stage, Namespace) {
    stage_by("")
}

/// The same, whose agent has this in its file.
pub(crate) fn stage_by(file: &str) -> (Stage, Namespace) {
    let mut stage = Stage::empty_by(file);
    let outside = stage.lab.namespace("outside").unwrap();
    stage.node.namespace().pair("up0", &outside, "eth0").unwrap();
    stage.empty = stage.node.inventory().unwrap();
    let network = stage.network.clone().with("isDefaultGateway", json!(false));
    stage.network = network.with("uplink", json!("up0"));
    (stage, outside)
}

pub(crate) fn add_in(stage: &mut Stage, id: &str, key: &str, value: Value) {
    let network = stage.network.clone();
    stage.network = network.clone().with(key, value);
    stage.add(id);
    stage.network = network;
}

/// The interface that a link is a port of.
fn master(stage: &Stage, link: &str) -> Option<String> {
    let shown = stage.node.namespace().command("ip", &["-j", "link", "show", "dev", link]).unwrap();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    shown[0]["master"].as_str().map(str::to_owned)
}

pub(crate) fn lost_at(stage: &Stage, port: &str, reason: &str) -> u64 {
    let drops = stage.node.agent().drops().unwrap();
    drops.iter().filter(|drop| drop.port == port && drop.reason == reason).map(|drop| drop.packets).sum()
}

/// A frame that is sent with one tag, or none, comes with the other.
fn assert_comes(
    from: &Wire,
    to: &Wire,
    (with, comes): (Option<u16>, Option<u16>),
    destination: Mac,
    text: &str,
) {
    let sent = frame(destination, from.mac(), text);
    from.send(&with.map_or(sent.clone(), |tci| tagged(tci, sent.clone())));
    let came = std::cell::Cell::new(None);
    to.until(|frame| {
        came.set(tag(frame));
        says(frame, text)
    });
    assert_eq!(came.get(), comes, "{text}");
}

#[test]
fn the_wire_reaches_containers_and_each_vlan_its_own_members() {
    let (mut stage, outside) = stage();
    stage.add("open");
    add_in(&mut stage, "ten", "vlan", json!(10));
    add_in(&mut stage, "trunk", "vlanTrunk", json!([{ "id": 10 }, { "id": 20 }]));
    add_in(&mut stage, "alone", "ingressPolicy", json!("isolated"));
    add_in(&mut stage, "checked", "macspoofchk", json!(true));
    let wire = Wire::tap(&outside, "eth0");
    let [open, ten, trunk, alone, checked] = &stage.sandboxes[..] else { unreachable!("five were added") };
    let (open, ten, trunk, alone, checked) = (tap(open), tap(ten), tap(trunk), tap(alone), tap(checked));

    // In: who hears it, and with which tag.
    let ways: [(Option<u16>, &Wire, Option<u16>); 5] = [
        (None, &open, None),
        (None, &alone, None),
        (Some(10), &ten, None),
        (Some(10), &trunk, Some(10)),
        (Some(0xe014), &trunk, Some(0xe014)),
    ];
    for (number, (with, to, comes)) in ways.into_iter().enumerate() {
        for (kind, destination) in [("unicast", to.mac()), ("broadcast", BROADCAST), ("unknown", NOBODY)] {
            assert_comes(&wire, to, (with, comes), destination, &format!("in {number} {kind}"));
        }
    }
    // Out: with which tag it comes to the wire.
    let ways: [(&Wire, Option<u16>, Option<u16>); 4] =
        [(&open, None, None), (&ten, None, Some(10)), (&trunk, Some(20), Some(20)), (&alone, None, None)];
    for (number, (from, with, comes)) in ways.into_iter().enumerate() {
        for (kind, destination) in [("unicast", wire.mac()), ("broadcast", BROADCAST)] {
            assert_comes(from, &wire, (with, comes), destination, &format!("out {number} {kind}"));
        }
    }
    // What nobody may hear: another VLAN's, a tag of one in none, and a checked container's name from the wire.
    wire.send(&tagged(20, frame(ten.mac(), wire.mac(), "a leak")));
    wire.send(&tagged(40, frame(trunk.mac(), wire.mac(), "a leak")));
    wire.send(&tagged(10, frame(open.mac(), wire.mac(), "not for open")));
    wire.send(&tagged(20, frame(BROADCAST, wire.mac(), "not for ten")));
    wire.send(&frame(BROADCAST, checked.mac(), "a leak"));
    open.send(&tagged(10, frame(BROADCAST, open.mac(), "a leak")));
    wire.send(&frame(BROADCAST, wire.mac(), "the last"));
    wire.send(&tagged(10, frame(BROADCAST, wire.mac(), "the last")));
    open.send(&frame(BROADCAST, open.mac(), "the last"));
    for (who, tap) in [("open", &open), ("ten", &ten), ("wire", &wire)] {
        let seen = tap.until(|frame| says(frame, "the last"));
        assert!(!seen.iter().any(|frame| says(frame, "a leak")), "{who}: {seen:02x?}");
        assert!(!seen.iter().any(|frame| says(frame, &format!("not for {who}"))), "{who}: {seen:02x?}");
    }
    for reason in ["other_vlan", "impostor", "kernels_way"] {
        assert!(lost_at(&stage, "up0", reason) > 0, "{reason}: {:?}", stage.node.agent().drops());
    }
}

#[test]
fn a_conversation_with_the_wire_comes_in_by_the_fast_path_and_is_explained_so() {
    let (mut stage, outside) = stage();
    stage.add("open");
    outside.command("ip", &["address", "add", "10.77.0.200/24", "dev", "eth0"]).unwrap();
    let echo = Echo::listen(&outside, "10.77.0.200".parse().unwrap(), 7300).unwrap();
    let namespace = stage.sandboxes[0].namespace();
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        Conversation::open(namespace, protocol, echo.address())
            .and_then(|mut talk| talk.chat(20, 1200))
            .unwrap();
    }
    let port = stage.node.agent().port("open").unwrap();
    assert!(port.to.fast > 40, "{port:?}");
    let wire = Wire::tap(&outside, "eth0");
    let bytes = frame(tap(&stage.sandboxes[0]).mac(), wire.mac(), "explain this");
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let arguments = ["--from", "uplink:up0", "--packet", &hex];
    let explained = stage.node.agent().ask_with("explain", &arguments).unwrap();
    assert_eq!(explained["verdict"], "deliver", "{explained}");
    assert_eq!(explained["to"][0], port.host_ifname.as_str(), "{explained}");
}

#[test]
fn what_passes_an_uplink_is_counted_by_direction_and_path_and_by_the_next_agent_too() {
    let (mut stage, outside) = stage();
    stage.add("open");
    add_in(&mut stage, "checked", "macspoofchk", json!(true));
    let (open, wire) = (tap(&stage.sandboxes[0]), Wire::tap(&outside, "eth0"));
    let checked = tap(&stage.sandboxes[1]);
    let uplink = |stage: &Stage| {
        let [uplink] = &stage.node.agent().status().unwrap().bridge_uplinks[..] else {
            panic!("there is one uplink");
        };
        assert_eq!((uplink.name.as_str(), uplink.bridge.as_str()), ("up0", "cni0"));
        uplink.clone()
    };
    let before = uplink(&stage);
    for number in 0..10 {
        wire.send(&frame(open.mac(), wire.mac(), &format!("in {number} ends")));
        wire.send(&frame(BROADCAST, wire.mac(), "to everybody"));
        wire.send(&frame(open.mac(), checked.mac(), "an impostor"));
    }
    open.until(|frame| says(frame, "in 9 ends"));
    for number in 0..10 {
        open.send(&frame(BROADCAST, open.mac(), "to everybody"));
        open.send(&frame(wire.mac(), open.mac(), &format!("out {number} ends")));
    }
    wire.until(|frame| says(frame, "out 9 ends"));
    let after = uplink(&stage);
    // Others have something to say, too: the kernels at both ends look for their neighbours.
    for (what, more) in [
        ("in, fast", after.from.fast - before.from.fast),
        ("in, by the kernel", after.from.kernel - before.from.kernel),
        ("in, dropped", after.from.dropped - before.from.dropped),
        ("out, fast", after.to.fast - before.to.fast),
        ("out, by the kernel", after.to.kernel - before.to.kernel),
    ] {
        assert!(more >= 10, "{what}: {more} in {before:?} {after:?}");
    }
    assert!(after.from.bytes >= before.from.bytes + 20 * 60, "{before:?} {after:?}");
    stage.node.agent_mut().kill().unwrap();
    stage.node.restart_agent().unwrap();
    let adopted = uplink(&stage);
    assert!(
        adopted.from.fast >= after.from.fast && adopted.to.fast >= after.to.fast,
        "{after:?} {adopted:?}"
    );
}

#[test]
fn an_uplink_is_given_back_by_its_last_container_and_kept_by_a_new_agent() {
    let (mut stage, outside) = stage();
    stage.add("open");
    add_in(&mut stage, "ten", "vlan", json!(10));
    assert_eq!(master(&stage, "up0").as_deref(), Some("cni0"));
    let programs = |stage: &Stage| stage.node.agent().status().unwrap().programs.len();
    let before = programs(&stage);
    stage.node.agent_mut().kill().unwrap();
    stage.node.restart_agent().unwrap();
    assert_eq!(programs(&stage), before);

    // Somebody takes it off the bridge: it is put back.
    stage.node.namespace().command("ip", &["link", "set", "up0", "nomaster"]).unwrap();
    let begun = Instant::now();
    while master(&stage, "up0").is_none() {
        assert!(
            begun.elapsed() < patience(PATIENCE),
            "up0 is not put back: {}",
            stage.node.agent().log_tail()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    let (wire, ten) = (Wire::tap(&outside, "eth0"), tap(&stage.sandboxes[1]));
    wire.send(&tagged(10, frame(ten.mac(), wire.mac(), "still here?")));
    ten.until(|frame| says(frame, "still here?"));

    let network = stage.network.clone();
    let mut sandboxes = stage.sandboxes.drain(..).collect::<Vec<_>>();
    sandboxes.remove(0).delete(&stage.node, &network).unwrap();
    assert_eq!(master(&stage, "up0").as_deref(), Some("cni0"), "the other still needs it");
    sandboxes.remove(0).delete(&stage.node, &network).unwrap();
    assert_eq!(master(&stage, "up0"), None);
    // Programs stay loaded for the next ones.
    let loaded = |line: &String| line.contains("v2/members/") || line.contains("v2/uplinks/");
    let left: Vec<_> = stage.left().into_iter().filter(|line| !loaded(line)).collect();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn what_can_be_no_uplink_is_refused_with_its_own_code_and_nothing_stays() {
    let (mut stage, _outside) = stage();
    let run =
        |stage: &Stage, arguments: &[&str]| drop(stage.node.namespace().command("ip", arguments).unwrap());
    run(&stage, &["link", "add", "other", "type", "bridge"]);
    for (name, changes) in [("in-other", &["master", "other"][..]), ("addressed", &[]), ("below", &[])] {
        run(&stage, &["link", "add", name, "type", "veth", "peer", "name", &format!("{name}-p")]);
        run(&stage, &[&["link", "set", name, "up"], changes].concat());
    }
    run(&stage, &["address", "add", "192.0.2.9/24", "dev", "addressed"]);
    run(&stage, &["link", "add", "link", "below", "name", "above", "type", "macvlan"]);
    stage.empty = stage.node.inventory().unwrap();
    let container = Container::create(&stage.lab, "victim").unwrap();
    let cases = [
        ("nowhere", "is not there"),
        ("other", "is a bridge"),
        ("in-other", "is in other already"),
        ("addressed", "192.0.2.9/24"),
        ("lo", "no Ethernet"),
        ("below", "is busy: above is on it"),
    ];
    for (uplink, why) in cases {
        let network = stage.network.clone().with("uplink", json!(uplink));
        let error = network.add(stage.node.namespace(), &container).unwrap_err();
        let refusal = error.downcast_ref::<Refusal>().unwrap_or_else(|| panic!("{uplink}: {error:#}"));
        assert_eq!(refusal.code, 104, "{uplink}: {refusal}");
        assert!(refusal.to_string().contains(why), "{uplink}: {refusal}");
        assert_eq!(stage.left(), Vec::<String>::new(), "{uplink}");
    }
    assert_eq!(master(&stage, "in-other").as_deref(), Some("other"));
}

/// Harvester's and OpenShift's nodes have bridges with a trunk of their own.
#[test]
fn vlans_on_a_bridge_whose_trunk_somebody_else_made_are_refused_until_the_trunk_is_named() {
    let (mut stage, outside) = stage();
    let node = stage.node.namespace();
    let ip = |arguments: &str| {
        let words: Vec<_> = arguments.split(' ').collect();
        node.command("ip", &words).unwrap();
    };
    ip("link add cni0 type bridge");
    ip("link set cni0 up");
    // A veth, as up0 is, would be a container's.
    ip("link add trunk0 link up0 type macvlan mode passthru");
    ip("link set trunk0 master cni0 up");
    stage.empty = stage.node.inventory().unwrap();
    let unnamed = stage.network.clone().with("uplink", json!(""));
    let container = Container::create(&stage.lab, "victim").unwrap();
    for (key, value) in [("vlan", json!(10)), ("vlanTrunk", json!([{"id": 10}]))] {
        let network = unnamed.clone().with(key, value);
        let error = network.add(stage.node.namespace(), &container).unwrap_err();
        let refusal = error.downcast_ref::<Refusal>().unwrap_or_else(|| panic!("{key}: {error:#}"));
        assert_eq!(refusal.code, 104, "{key}: {refusal}");
        for word in ["trunk0", "`uplink`", "cni0", "10"] {
            assert!(refusal.to_string().contains(word), "{key}: {refusal}");
        }
        assert_eq!(stage.left(), Vec::<String>::new(), "{key}");
    }
    // Without VLANs it is the bridge's business.
    for arguments in [&["link", "del", "trunk0"][..], &["link", "set", "up0", "master", "cni0"]] {
        stage.node.namespace().command("ip", arguments).unwrap();
    }
    stage.empty = stage.node.inventory().unwrap();
    let named = std::mem::replace(&mut stage.network, unnamed);
    stage.add("open");
    stage.network = named;
    add_in(&mut stage, "one", "vlan", json!(10));
    let (wire, one) = (Wire::tap(&outside, "eth0"), tap(&stage.sandboxes[1]));
    assert_comes(&wire, &one, (Some(10), None), one.mac(), "in");
    assert_comes(&one, &wire, (None, Some(10)), wire.mac(), "out");
    // It was a port before, and stays one.
    let network = stage.network.clone().with("vlan", json!(10));
    stage.sandboxes.remove(1).delete(&stage.node, &network).unwrap();
    assert_eq!(master(&stage, "up0").as_deref(), Some("cni0"));
}
