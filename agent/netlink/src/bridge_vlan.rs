//! The VLANs of a bridge's port, or of the bridge itself, where the bridge keeps VLANs apart.

use netlink_packet_core::NLM_F_DUMP;
use nix::libc;

use crate::attribute::{attributes, find};
use crate::request::{Reply, Request};

// linux/rtnetlink.h and linux/if_bridge.h; neither `libc` nor the crates have them.
const RTM_GETVLAN: u16 = 114;
const BRIDGE_VLANDB_ENTRY: u16 = 1;
const BRIDGE_VLANDB_ENTRY_INFO: u16 = 1;
const BRIDGE_VLANDB_ENTRY_RANGE: u16 = 2;
const BRIDGE_VLANDB_ENTRY_STATE: u16 = 3;
const BRIDGE_VLAN_INFO_PVID: u16 = 1 << 1;
const BRIDGE_VLAN_INFO_UNTAGGED: u16 = 1 << 2;
const BR_STATE_FORWARDING: u8 = 3;

/// Bytes of `struct br_vlan_msg`: the family, and where the ifindex begins.
const HEADER: usize = 8;

/// VLANs next to each other, with the same settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Vlans {
    first: u16,
    last: u16,
    pvid: bool,
    untagged: bool,
    forwards: bool,
}

/// The VLANs of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortVlans(Vec<Vlans>);

impl PortVlans {
    /// The VLAN of its untagged frames, if it takes any.
    pub fn pvid(&self) -> Option<u16> {
        self.0.iter().find(|vlans| vlans.pvid).map(|vlans| vlans.first)
    }

    /// Whether frames of a VLAN pass it.
    pub fn has(&self, vid: u16) -> bool {
        self.of(vid).is_some_and(|vlans| vlans.forwards)
    }

    /// Whether they leave it without their tag.
    pub fn is_untagged(&self, vid: u16) -> bool {
        self.of(vid).is_some_and(|vlans| vlans.untagged)
    }

    /// Those of several messages.
    pub fn all(parts: Vec<Self>) -> Self {
        Self(parts.into_iter().flat_map(|part| part.0).collect())
    }

    fn of(&self, vid: u16) -> Option<&Vlans> {
        self.0.iter().find(|vlans| (vlans.first..=vlans.last).contains(&vid))
    }
}

impl Reply for PortVlans {
    fn read(payload: &[u8]) -> Option<Self> {
        let entries = attributes(payload.get(HEADER..)?).filter(|entry| entry.kind() == BRIDGE_VLANDB_ENTRY);
        Some(Self(entries.filter_map(|entry| vlans(entry.value())).collect()))
    }
}

fn vlans(entry: &[u8]) -> Option<Vlans> {
    let number = |bytes: &[u8]| bytes.first_chunk().copied().map(u16::from_ne_bytes);
    let info = find(entry, BRIDGE_VLANDB_ENTRY_INFO)?;
    let (flags, first) = (number(info)?, number(info.get(2..)?)?);
    let last = find(entry, BRIDGE_VLANDB_ENTRY_RANGE).and_then(number).unwrap_or(first);
    let state = find(entry, BRIDGE_VLANDB_ENTRY_STATE).and_then(|state| state.first());
    Some(Vlans {
        first,
        last,
        pvid: flags & BRIDGE_VLAN_INFO_PVID != 0,
        untagged: flags & BRIDGE_VLAN_INFO_UNTAGGED != 0,
        forwards: state.is_none_or(|state| *state == BR_STATE_FORWARDING),
    })
}

/// Asks for the VLANs of a bridge's port, or of the bridge itself (since Linux 5.6).
pub fn vlans_of(index: u32) -> Request<PortVlans> {
    let mut payload = vec![libc::AF_BRIDGE as u8, 0, 0, 0];
    payload.extend(index.to_ne_bytes());
    Request::raw("list the VLANs of a bridge's port", RTM_GETVLAN, NLM_F_DUMP, payload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::{attribute, nested};

    fn entry(flags: u16, first: u16, last: Option<u16>, state: u8) -> Vec<u8> {
        let info = [flags.to_ne_bytes(), first.to_ne_bytes()].concat();
        let mut inner = attribute(BRIDGE_VLANDB_ENTRY_INFO, &info);
        if let Some(last) = last {
            inner.extend(attribute(BRIDGE_VLANDB_ENTRY_RANGE, &last.to_ne_bytes()));
        }
        inner.extend(attribute(BRIDGE_VLANDB_ENTRY_STATE, &[state]));
        nested(BRIDGE_VLANDB_ENTRY, &inner)
    }

    #[test]
    fn ranges_pvid_and_states_are_read() {
        let message = [
            vec![0; HEADER],
            entry(BRIDGE_VLAN_INFO_PVID | BRIDGE_VLAN_INFO_UNTAGGED, 10, None, BR_STATE_FORWARDING),
            entry(0, 20, Some(30), BR_STATE_FORWARDING),
            entry(0, 40, None, 4),
        ]
        .concat();
        let vlans = PortVlans::read(&message).unwrap();
        assert_eq!((vlans.pvid(), vlans.is_untagged(10), vlans.is_untagged(20)), (Some(10), true, false));
        assert_eq!(
            [10, 19, 20, 30, 31, 40].map(|vid| vlans.has(vid)),
            [true, false, true, true, false, false]
        );
        assert_eq!(PortVlans::read(&message[..4]), None);
    }
}
