//! announce: what a container's frame says of where stations and addresses are. Part of the stage `mac filter`.
//!
//! What an ADD has written into `FDB` and `ADDRESSES` is a hint. An open port may announce that a station or an address is behind it, as on
//! a kernel bridge: then the hint gives way. A station that has moved is left to the kernel's bridge, which has learned it; an address
//! gets another owner, or none where a station behind the container has it. The programs add no entry, so nobody fills a map.
//! Beyond an uplink a station is learned, and the hint gives way as well.
//! A checked port takes nothing, and nothing is taken from it; the node's own address never moves.

use super::neighbor_proxy::Within;
use crate::abi::vlan::VID_ANY;
use crate::abi::{
    AddressKey, NO_OWNER, Owner, PORT_AWAY, PORT_BLOCKED, PORT_CHECKED, Port, PortKey, Station, StationKey,
};
use crate::stages::find;
use crate::wire::address::Address;
use crate::wire::{EtherType, Frame, HEADERS_BYTES, Packet};
use crate::{Tables, wire};

/// Offset of a message in its frame, which has no inline tag. Verifier: a constant.
const PAYLOAD: u32 = 14;

/// Whether a frame of an open port may say something new: its source address is not the container's, or it announces an address.
#[inline(always)]
pub fn is_candidate(frame: &Frame, port: &Port) -> bool {
    port.flags & PORT_CHECKED == 0
        && (port.flags & PORT_AWAY != 0
            || frame.destination.is_group() && matches!(frame.ether_type, EtherType::ARP | EtherType::IPV6)
            || !frame.source.is(port.mac))
}

/// Hears the frame. Whether it said anything new: then others have to hear it, too.
#[inline(always)]
pub fn hear<P: Packet, T: Tables>(
    packet: &mut P,
    frame: &Frame,
    port: &Port,
    within: Within,
    here: u32,
    tables: &T,
) -> bool {
    // A tag that the kernel's bridge looks at is not looked at here.
    let is_foreign = within.vid == 0 && frame.is_tagged();
    if is_foreign || !is_candidate(frame, port) || !frame.source.is_valid_source() {
        return false;
    }
    let station = StationKey { bridge: port.bridge, vid: within.vid, mac: frame.source };
    let is_back = port.flags & PORT_AWAY != 0 && frame.source.is(port.mac);
    if is_back {
        tables.mark_moved(&station, &PortKey { ifindex: here }, false);
    }
    let is_news = is_back || tables.hear_station(&station, here);
    let Some(address) = announced(packet, frame) else { return is_news };
    let owner = Owner { ifindex: if frame.source.is(port.mac) { here } else { NO_OWNER } };
    let key = AddressKey::new(port.bridge, within.vid, address);
    tables.hear_address(&key, &owner, here) || is_news
}

/// The same on a port in VLANs, of a frame in the VLAN `vid`. The kernel's bridge has no part in it: a station that has moved is flooded
/// to.
#[inline(always)]
pub fn hear_member<P: Packet, T: Tables>(
    packet: &mut P,
    frame: &Frame,
    port: &Port,
    vid: u16,
    here: u32,
    tables: &T,
) -> bool {
    if !is_candidate(frame, port) {
        return false;
    }
    let station = StationKey { bridge: port.bridge, vid, mac: frame.source };
    let is_news = tables.hear_station(&hint_in_vlan(&station, tables), here);
    let Some(address) = announced(packet, frame) else { return is_news };
    let owner = Owner { ifindex: if frame.source.is(port.mac) { here } else { NO_OWNER } };
    tables.hear_address(&AddressKey::new(port.bridge, vid, address), &owner, here) || is_news
}

/// The key by which `FDB` has a station of a VLAN: of a port that is in this VLAN only, or in others as well.
#[inline(always)]
pub fn hint_in_vlan<T: Tables>(sender: &StationKey, tables: &T) -> StationKey {
    let any = StationKey { vid: VID_ANY, ..*sender };
    let is_there = |station: Station| find::is_in_vlan(sender.vid, &station, tables);
    if tables.station(sender).is_none() && tables.station(&any).is_some_and(is_there) { any } else { *sender }
}

/// Hears the address that a frame to a group announces which came by the uplink `here`, in the VLAN `vid` or in none. Where it is from the
/// MAC address of the port that has the address, the station has moved and the address with it, or somebody has sent the port's own
/// frame back.
#[inline(always)]
pub fn hear_beyond<P: Packet, T: Tables>(packet: &mut P, port: &Port, vid: u16, here: u32, tables: &T) {
    let Ok(frame) = wire::frame(packet) else { return };
    // A tag that says no VLAN of ours is not looked behind.
    let is_foreign = vid == 0 && frame.is_tagged();
    if is_foreign || !frame.destination.is_group() || port.flags & PORT_BLOCKED != 0 {
        return;
    }
    let Some(address) = announced(packet, &frame) else { return };
    let key = AddressKey::new(port.bridge, vid, address);
    let Some(known) = tables.owner(&key) else { return };
    let is_its_own = |port: Port| frame.source.is(port.mac);
    if !tables.port(&PortKey { ifindex: known.ifindex }).is_some_and(is_its_own) {
        tables.hear_address(&key, &Owner { ifindex: NO_OWNER }, here);
    }
}

/// The address that a frame says its sender has: of ARP and neighbour discovery.
#[inline(always)]
fn announced<P: Packet>(packet: &mut P, frame: &Frame) -> Option<Address> {
    if frame.inline_tags != 0 || !matches!(frame.ether_type, EtherType::ARP | EtherType::IPV6) {
        return None;
    }
    // What cannot be made readable is not read.
    let _ = packet.linearize(HEADERS_BYTES);
    if frame.ether_type == EtherType::IPV6 {
        return wire::announced(packet);
    }
    let arp = wire::arp(packet, PAYLOAD).ok()?;
    (arp.sender_mac.is(frame.source) && !arp.sender.is_unspecified()).then_some(arp.sender)
}
