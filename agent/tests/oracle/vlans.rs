//! Ports in VLANs against the kernel's own VLAN filtering, where the kernel has it.

use serde_json::json;
use shunt_lab::{Lab, Lacking, skip};

use crate::frames::{self, Host, NOBODY, Sent};
use crate::same::{assert_all_alike, is_a_lie};
use crate::twins::{Manner, Ours, Plain, bare};
use crate::wire::{BROADCAST, Mac, tag, tagged};

/// All ports are in it.
const COMMON: u16 = 10;

/// Of each port: its own frames' VLAN, and those that it sends and hears with tags.
const VLANS: [(u16, &[u16]); 4] = [(COMMON, &[20]), (COMMON, &[]), (30, &[COMMON, 20]), (20, &[COMMON])];

fn filter(plain: &Plain, hosts: &[Host]) -> bool {
    let node = plain.node();
    let filtering =
        ["link", "set", "cni0", "type", "bridge", "vlan_filtering", "1", "vlan_default_pvid", "0"];
    if node.command("ip", &filtering).is_err() {
        return false;
    }
    for (index, ((untagged, tagged), host)) in VLANS.iter().zip(hosts).enumerate() {
        let (port, mac) = (format!("port{index}"), text(host.mac));
        let bridge = |arguments: &[&str]| node.command("bridge", arguments).unwrap();
        for vid in [&[*untagged], *tagged].concat() {
            let (vid, form) =
                (vid.to_string(), if vid == *untagged { &["pvid", "untagged"][..] } else { &[] });
            bridge(&[&["vlan", "add", "dev", &port, "vid", &vid], form].concat());
            bridge(&["fdb", "replace", &mac, "dev", &port, "master", "static", "vlan", &vid]);
        }
    }
    true
}

/// From every port, with every tag, to every station.
fn among_vlans(hosts: &[Host], bridge: Mac) -> Vec<Sent> {
    let mut sent = Vec::new();
    for (from, host) in hosts.iter().enumerate() {
        for vid in [None, Some(0), Some(COMMON), Some(20), Some(30), Some(40), Some(0xe00a), Some(4095)] {
            let others = hosts.iter().map(|host| host.mac).enumerate();
            let others = others.map(|(to, mac)| (format!("container {to}"), mac));
            let rest = [("everybody", BROADCAST), ("nobody", NOBODY), ("the bridge", bridge)];
            for (to, destination) in others.chain(rest.map(|(to, mac)| (to.to_owned(), mac))) {
                let name = format!("{vid:?} from {from} to {to}");
                let frame = [&destination[..], &host.mac, &[0x88, 0xb5], name.as_bytes(), &[0; 46]].concat();
                let bytes = vid.map_or(frame.clone(), |tci| tagged(tci, frame));
                sent.push(Sent { name, from, bytes });
            }
        }
    }
    sent
}

/// A service tag, or a tag in a tag: dropped by us and counted.
fn is_stacked(sent: &Sent) -> bool {
    let inner = bare(&sent.bytes);
    inner[12..14] == [0x88, 0xa8] || (tag(&sent.bytes).is_some() && tag(&inner).is_some())
}

/// Spanning trees are nobody's in VLANs; a bridge that takes no part in them passes them on.
fn is_of_a_spanning_tree(sent: &Sent) -> bool {
    sent.bytes[..6] == [1, 0x80, 0xc2, 0, 0, 0]
}

/// Up to four bytes above the MTU of a small container: room for a tag, which a bridge gives to what has none as well.
fn is_in_a_tags_room(sent: &Sent) -> bool {
    (1501..=1504).contains(&(sent.bytes.len() - 14))
}

/// To a container in several VLANs, none of them the frame's. It has one place, so the frame is dropped; a bridge, which knows nobody
/// of that address in that VLAN, sends it to all the others.
fn is_for_another_vlan(sent: &Sent, hosts: &[Host]) -> bool {
    let vid = tag(&sent.bytes).map_or(0, |tci| tci & 0xfff);
    let vid = if vid == 0 { VLANS[sent.from].0 } else { vid };
    let to = hosts.iter().position(|host| host.mac == sent.bytes[..6]);
    to.is_some_and(|to| VLANS[to].0 != vid && !VLANS[to].1.is_empty() && !VLANS[to].1.contains(&vid))
}

fn text(mac: Mac) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

#[test]
fn ports_in_vlans_hear_what_they_would_hear_on_a_bridge_that_filters_vlans() {
    let manner = Manner {
        keys: |index| {
            let (untagged, tagged) = VLANS[index];
            vec![("vlans", json!({ "untagged": untagged, "tagged": tagged }))]
        },
        // Stations behind containers are not learned.
        flags: |_| &["learning", "off"],
    };
    let lab = Lab::new().unwrap();
    let mut ours = Ours::start(&lab, &manner);
    let mut plain = Plain::like(&lab, &ours, &manner);
    if !filter(&plain, &ours.hosts) {
        return skip(Lacking::Kernel("VLAN filtering of bridges (CONFIG_BRIDGE_VLAN_FILTERING)"));
    }
    (ours.side.vlan, plain.side.vlan) = (Some(COMMON), Some(COMMON));
    let mut sent = frames::all(&ours.hosts, ours.bridge_mac());
    sent.extend(among_vlans(&ours.hosts, ours.bridge_mac()));
    assert_all_alike(&ours, &plain, &sent, |sent| {
        let is_by_design =
            is_stacked(sent) || is_of_a_spanning_tree(sent) || is_for_another_vlan(sent, &ours.hosts);
        is_by_design || is_in_a_tags_room(sent) || is_a_lie(sent, &ours)
    });
}
