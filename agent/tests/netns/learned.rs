//! Stations beyond uplinks: learned from what they send, reached straight, moved, and never in a container's way.

use std::time::{Duration, Instant};

use aya::maps::{HashMap, Map, MapData};
use nix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use shunt_dataplane::abi::StationKey;
use shunt_dataplane::abi::learning::{AGEING, Learned, MAX_HELD};
use shunt_lab::{Namespace, patience};

use crate::restrictions::tap;
use crate::stage::Stage;
use crate::uplinks::{add_in, stage};
use crate::wire::{BROADCAST, Mac, Wire, frame, says, tag, tagged};

/// How long the agent may take to look through what was learned.
const PATIENCE: Duration = Duration::from_secs(20);

fn fdb(stage: &Stage) -> Vec<Value> {
    stage.node.agent().ask("fdb").unwrap().as_array().unwrap().clone()
}

fn text(mac: Mac) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

fn entry(stage: &Stage, mac: Mac) -> Option<Value> {
    fdb(stage).into_iter().find(|entry| entry["mac"] == text(mac).as_str())
}

fn wait_for(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < patience(PATIENCE), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn learned_map(stage: &Stage) -> HashMap<MapData, StationKey, Learned> {
    let data = MapData::from_pin(stage.node.agent().bpffs().join("v2/maps/LEARNED")).unwrap();
    HashMap::try_from(Map::from_map_data(data).unwrap()).unwrap()
}

/// A second uplink `up1` of the same bridge, to the outside's `eth1`, and a container `other` that names it.
fn second_uplink(stage: &mut Stage, outside: &Namespace) {
    stage.node.namespace().pair("up1", outside, "eth1").unwrap();
    add_in(stage, "other", "uplink", json!("up1"));
}

/// The station says something to a container, and is known from then on.
fn hear(wire: &Wire, station: Mac, container: &Wire, text: &str) {
    wire.send(&frame(container.mac(), station, text));
    container.until(|frame| says(frame, text));
}

#[test]
fn a_station_that_was_heard_is_reached_straight_and_by_nobody_elses_port() {
    let (mut stage, outside) = stage();
    stage.add("open");
    add_in(&mut stage, "ten", "vlan", json!(10));
    add_in(&mut stage, "trunk", "vlanTrunk", json!([{ "id": 10 }]));
    let (open, ten, trunk) = (tap(&stage.sandboxes[0]), tap(&stage.sandboxes[1]), tap(&stage.sandboxes[2]));
    let wire = Wire::tap(&outside, "eth0");
    let cousin: Mac = [2, 0xfa, 0, 0, 0, 9];
    hear(&wire, wire.mac(), &open, "here I am");
    wire.send(&tagged(10, frame(ten.mac(), cousin, "so am I")));
    ten.until(|frame| says(frame, "so am I"));
    let known = entry(&stage, wire.mac()).expect("a station that was heard");
    assert_eq!(
        (&known["kind"], &known["port"], &known["vid"]),
        (&json!("learned"), &json!("up0"), &json!(0))
    );
    assert_eq!(entry(&stage, cousin).expect("one in a VLAN")["vid"], 10);
    assert_eq!(entry(&stage, open.mac()).expect("a container")["kind"], "static");

    let before = stage.node.agent().port("open").unwrap().from;
    for number in 0..20 {
        open.send(&frame(wire.mac(), open.mac(), &format!("answer {number} ends")));
    }
    wire.until(|frame| says(frame, "answer 19 ends"));
    let after = stage.node.agent().port("open").unwrap().from;
    assert!(after.fast >= before.fast + 20, "{before:?} {after:?}");
    ten.send(&frame(cousin, ten.mac(), "for the cousin"));
    let came = std::cell::Cell::new(None);
    wire.until(|frame| {
        came.set(tag(frame));
        says(frame, "for the cousin")
    });
    assert_eq!(came.get(), Some(10));
    ten.send(&frame(trunk.mac(), ten.mac(), "the last"));
    let seen = trunk.until(|frame| says(frame, "the last"));
    assert!(!seen.iter().any(|frame| says(frame, "for the cousin")), "it was flooded: {seen:02x?}");
}

#[test]
fn the_kernels_bridge_knows_whom_only_the_fast_path_hears() {
    let (mut stage, outside) = stage();
    stage.add("open");
    let (open, wire) = (tap(&stage.sandboxes[0]), Wire::tap(&outside, "eth0"));
    let silent: Mac = [2, 0xfa, 0, 0, 0, 8];
    hear(&wire, silent, &open, "here I am");
    let node = stage.node.namespace();
    let knows = || node.command("bridge", &["fdb", "show", "dev", "up0"]).unwrap().contains(&text(silent));
    wait_for("the kernel's bridge was not told", knows);
}

#[test]
fn a_station_that_moves_is_found_at_its_new_place() {
    let (mut stage, outside) = stage();
    stage.add("open");
    second_uplink(&mut stage, &outside);
    let open = tap(&stage.sandboxes[0]);
    let (first, second) = (Wire::tap(&outside, "eth0"), Wire::tap(&outside, "eth1"));
    let nomad: Mac = [2, 0xfa, 0, 0, 0, 7];
    for (place, (wire, port)) in [(&first, "up0"), (&second, "up1"), (&first, "up0")].into_iter().enumerate()
    {
        let word = format!("from place {place}");
        hear(wire, nomad, &open, &word);
        assert_eq!(entry(&stage, nomad).expect("the nomad")["port"], port);
        let word = format!("to place {place}");
        open.send(&frame(nomad, open.mac(), &word));
        wire.until(|frame| says(frame, &word));
    }
    // A checked container's place is nobody else's to take.
    add_in(&mut stage, "checked", "macspoofchk", json!(true));
    let checked = tap(&stage.sandboxes[2]);
    second.send(&frame(nomad, checked.mac(), "I am checked"));
    second.send(&frame(checked.mac(), second.mac(), "the last"));
    checked.until(|frame| says(frame, "the last"));
    assert_eq!(entry(&stage, checked.mac()).expect("a container")["kind"], "static");
}

#[test]
fn five_thousand_addresses_on_a_wire_take_no_containers_place_and_the_oldest_give_way() {
    let (mut stage, outside) = stage();
    stage.add("open");
    stage.add("other");
    let (open, wire) = (tap(&stage.sandboxes[0]), Wire::tap(&outside, "eth0"));
    let invented = |number: u16| -> Mac {
        let [high, low] = number.to_be_bytes();
        [2, 0xfb, 0, 0, high, low]
    };
    for number in 0..5_000 {
        wire.send(&frame(open.mac(), invented(number), "a flood"));
    }
    // So many do not all wait for their reader.
    open.until_silence();
    hear(&wire, invented(5_000), &open, "the last");
    let learned = || fdb(&stage).iter().filter(|entry| entry["kind"] == "learned").count() as u64;
    // What comes while the agent counts is not counted.
    assert!(learned() < MAX_HELD + 512, "{}", learned());
    let warned = || {
        let warnings = stage.node.agent().status().unwrap().warnings;
        warnings.iter().any(|warning| warning.contains("up0") && warning.contains("no room"))
    };
    assert!(warned() || learned() < MAX_HELD - 96, "it was counted, or there was room in time");
    // Somebody new is learned, once the oldest have gone.
    let late: Mac = [2, 0xfa, 0, 0, 0, 6];
    wait_for("nobody gives way", || {
        wire.send(&frame(open.mac(), late, "late"));
        entry(&stage, late).is_some()
    });
    wait_for("the oldest stay", || entry(&stage, invented(0)).is_none());
    assert_eq!(entry(&stage, open.mac()).expect("a container")["kind"], "static");
    stage.assert_talk(0, 1);
}

#[test]
fn an_address_that_two_wires_fight_over_harms_nobody_else() {
    let (mut stage, outside) = stage();
    stage.add("open");
    second_uplink(&mut stage, &outside);
    let open = tap(&stage.sandboxes[0]);
    let wires = [Wire::tap(&outside, "eth0"), Wire::tap(&outside, "eth1")];
    hear(&wires[0], wires[0].mac(), &open, "before the storm");
    let storm: Mac = [2, 0xfa, 0, 0, 0, 5];
    for wire in wires.iter().cycle().take(2_000) {
        wire.send(&frame(open.mac(), storm, "a storm"));
    }
    open.until_silence();
    hear(&wires[1], wires[1].mac(), &open, "after the storm");
    let place = |mac| entry(&stage, mac).expect("a station that was heard")["port"].clone();
    assert_eq!((place(wires[0].mac()), place(wires[1].mac())), (json!("up0"), json!("up1")));
    assert_eq!(place(storm), "up1", "where it was heard last");
    assert_eq!(fdb(&stage).iter().filter(|entry| entry["mac"] == text(storm).as_str()).count(), 1);
    stage.assert_talk(0, 1);
}

#[test]
fn a_station_that_moves_onto_the_node_is_found_there() {
    let (mut stage, outside) = stage();
    stage.add("open");
    let (open, wire) = (tap(&stage.sandboxes[0]), Wire::tap(&outside, "eth0"));
    let guest: Mac = [2, 0xfa, 0, 0, 0, 4];
    hear(&wire, guest, &open, "from the wire");
    assert_eq!(entry(&stage, guest).expect("the guest")["port"], "up0");

    // Somebody else's interface on the bridge, as a machine's that has migrated.
    let host = stage.lab.namespace("host").unwrap();
    stage.node.namespace().pair("guest0", &host, "eth0").unwrap();
    stage.node.namespace().command("ip", &["link", "set", "guest0", "master", "cni0"]).unwrap();
    let inside = Wire::tap(&host, "eth0");
    wait_for("it is still looked for on the wire", || {
        inside.send(&frame(BROADCAST, guest, "I have moved"));
        entry(&stage, guest).is_none()
    });
    open.send(&frame(guest, open.mac(), "welcome"));
    inside.until(|frame| says(frame, "welcome"));
}

#[test]
fn nobody_is_known_beyond_a_wire_that_is_cut() {
    let (mut stage, outside) = stage();
    stage.add("open");
    let (open, wire) = (tap(&stage.sandboxes[0]), Wire::tap(&outside, "eth0"));
    let cut_off: Mac = [2, 0xfa, 0, 0, 0, 3];
    hear(&wire, cut_off, &open, "here I am");
    assert!(entry(&stage, cut_off).is_some());
    outside.command("ip", &["link", "set", "eth0", "down"]).unwrap();
    wait_for("it is still known", || entry(&stage, cut_off).is_none());
}

#[test]
fn a_station_that_was_not_heard_for_long_is_unknown_at_once_and_then_forgotten() {
    let (mut stage, outside) = stage();
    stage.add("open");
    let (open, wire) = (tap(&stage.sandboxes[0]), Wire::tap(&outside, "eth0"));
    let old: Mac = [2, 0xfa, 0, 0, 0, 2];
    hear(&wire, old, &open, "here I am");
    // A machine that has only just been started has no such past.
    let up = || Duration::from(clock_gettime(ClockId::CLOCK_BOOTTIME).unwrap());
    while up() < Duration::from_nanos(AGEING + 1) {
        std::thread::sleep(Duration::from_secs(1));
    }
    let mut stations = learned_map(&stage);
    let is_old =
        |(key, known): (StationKey, Learned)| (text(key.mac.octets()) == text(old)).then_some((key, known));
    let (key, known) = stations.iter().flatten().find_map(is_old).expect("a station that was heard");
    stations.insert(key, Learned { seen: 1, ..known }, 0).unwrap();
    assert!(entry(&stage, old).is_none(), "{:?}", fdb(&stage));
    let before = stage.node.agent().port("open").unwrap().from;
    open.send(&frame(old, open.mac(), "are you there?"));
    wire.until(|frame| says(frame, "are you there?"));
    let after = stage.node.agent().port("open").unwrap().from;
    assert!(after.kernel > before.kernel, "{before:?} {after:?}");
    wait_for("its entry stays", || stations.get(&key, 0).is_err());
}

#[test]
fn stations_are_learned_without_an_agent_and_kept_by_the_next() {
    let (mut stage, outside) = stage();
    stage.add("open");
    let (open, wire) = (tap(&stage.sandboxes[0]), Wire::tap(&outside, "eth0"));
    let [early, late]: [Mac; 2] = [[2, 0xfa, 0, 0, 0, 1], [2, 0xfa, 0, 0, 0, 10]];
    hear(&wire, early, &open, "before");
    stage.node.agent_mut().kill().unwrap();
    hear(&wire, late, &open, "meanwhile");
    stage.node.restart_agent().unwrap();
    for mac in [early, late] {
        assert_eq!(entry(&stage, mac).expect("it was heard")["kind"], "learned");
    }
    let before = stage.node.agent().port("open").unwrap().from;
    open.send(&frame(late, open.mac(), "an answer"));
    wire.until(|frame| says(frame, "an answer"));
    let after = stage.node.agent().port("open").unwrap().from;
    assert!(after.fast > before.fast, "{before:?} {after:?}");
}

#[test]
fn where_a_frame_to_a_station_goes_is_explained() {
    let (mut stage, outside) = stage();
    stage.add("open");
    let (open, wire) = (tap(&stage.sandboxes[0]), Wire::tap(&outside, "eth0"));
    let hex = |frame: &[u8]| frame.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let explain = |from: &str, frame: &[u8]| {
        let arguments = ["--from", from, "--packet", &hex(frame)];
        stage.node.agent().ask_with("explain", &arguments).unwrap()
    };
    let station: Mac = [2, 0xfa, 0, 0, 0, 11];
    let says_it = frame(open.mac(), station, "here I am");
    let explained = explain("uplink:up0", &says_it);
    assert!(explained.to_string().contains("would be written: beyond up0"), "{explained}");
    assert!(entry(&stage, station).is_none(), "to ask teaches nothing");
    hear(&wire, station, &open, "here I am");
    let explained = explain("pods/open/eth0", &frame(station, open.mac(), "an answer"));
    assert_eq!(explained["verdict"], "deliver", "{explained}");
    assert_eq!(explained["to"][0], "up0", "{explained}");
    assert!(explained.to_string().contains("beyond up0, heard"), "{explained}");
}

#[test]
fn from_an_uplink_from_which_an_operator_lets_the_bridge_learn_nothing_nothing_is_learned() {
    let (mut stage, outside) = stage();
    stage.add("open");
    let (wire, open) = (Wire::tap(&outside, "eth0"), tap(&stage.sandboxes[0]));
    let station = [2, 0xbe, 0xef, 0, 0, 7];
    hear(&wire, station, &open, "known");
    wait_for("the station is learned", || entry(&stage, station).is_some());
    let learning = |how| {
        stage.node.namespace().command("bridge", &["link", "set", "dev", "up0", "learning", how]).unwrap();
        std::thread::sleep(Duration::from_secs(1));
    };
    learning("off");
    assert_eq!(entry(&stage, station), None);
    hear(&wire, station, &open, "forgotten");
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(entry(&stage, station), None);
    // It is reached all the same.
    open.send(&frame(station, open.mac(), "flooded"));
    wire.until(|frame| says(frame, "flooded"));
    assert!(stage.node.agent().status().unwrap().healthy);
    learning("on");
    hear(&wire, station, &open, "known again");
    wait_for("the station is learned", || entry(&stage, station).is_some());
}

#[test]
fn by_an_uplink_that_an_operator_disables_nothing_comes() {
    let (mut stage, outside) = stage();
    add_in(&mut stage, "one", "vlan", json!(10));
    stage.add("open");
    let (wire, one, open) = (Wire::tap(&outside, "eth0"), tap(&stage.sandboxes[0]), tap(&stage.sandboxes[1]));
    let state = |how| {
        stage.node.namespace().command("bridge", &["link", "set", "dev", "up0", "state", how]).unwrap();
        std::thread::sleep(Duration::from_secs(1));
    };
    let heard = |text: &str| {
        wire.send(&tagged(10, frame(one.mac(), wire.mac(), text)));
        wire.send(&frame(open.mac(), wire.mac(), text));
        [&one, &open].map(|wire| wire.until_silence().iter().any(|frame| says(frame, text)))
    };
    state("0");
    assert_eq!(heard("while it is disabled"), [false, false]);
    state("3");
    assert_eq!(heard("once it is not"), [true, true]);
}
