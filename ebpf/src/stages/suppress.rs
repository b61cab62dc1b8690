//! suppress: frames to a group that tell nobody on the bridge anything. Part of the stage `neighbour proxy`.
//!
//! The kernel's bridge copies a frame to a group to each of its ports, and a container that comes says several: it announces its addresses,
//! looks for routers, and reports to which groups of the link it listens. On a bridge all of whose ports are containers'
//! ([`PORT_SPARING`]) the programs know whether anybody may need such a frame. Where nobody does, only the node gets it, as the bridge's
//! neighbour suppression and multicast snooping keep such frames from ports:
//! - an announcement of an address that nobody has had, asked for, probed or claimed ([`PORT_FRESH`]; of the link-local address that is made
//!   of the container's MAC address `MENTIONS`): no neighbour has an entry that it would change;
//! - a router solicitation, unless a router has been heard, or somebody who listens to the group of all routers;
//! - a listener report that names groups of the link only, unless somebody has queried: no router forwards these groups, and no bridge heeds a
//!   report without a querier (RFC 4541).
//!
//! A duplicate address probe is never suppressed, nor what its address's owner answers: it takes the bit away.

use crate::Tables;
use crate::abi::{
    AddressKey, PORT_AWAY, PORT_FRESH, PORT_HEEDED, PORT_QUERIED, PORT_ROUTED, PORT_SPARING, Port, PortKey,
    STATION_ASIDE, STATION_MOVED, STATION_PEER_UP,
};
use crate::wire::address::Address;
use crate::wire::{Frame, LinkMessage, Listening, Packet, link_message};

/// What a frame is, but for its message.
struct Speaker<'a> {
    port: &'a Port,
    here: u32,
    /// From the container's own address.
    is_container: bool,
    /// What it says may be kept from others, if it says nothing new.
    is_spared: bool,
}

/// Notes what a frame to a group, by the container's port `here`, says. Whether nobody but the node needs it.
#[inline(always)]
pub fn is_needless<P: Packet, T: Tables>(
    packet: &mut P,
    frame: &Frame,
    port: &Port,
    here: u32,
    tables: &T,
) -> bool {
    let Some(bridge) = tables.port(&PortKey { ifindex: port.bridge }) else { return false };
    // A tag that the kernel's bridge looks at is not looked at here.
    if bridge.flags & PORT_SPARING == 0 || port.vid != 0 || frame.is_tagged() {
        return false;
    }
    let is_container = frame.source.is(port.mac);
    let is_spared = is_container && port.flags & (PORT_AWAY | PORT_HEEDED) == 0;
    let speaker = Speaker { port, here, is_container, is_spared };
    match link_message(packet, frame) {
        LinkMessage::Announcement { address, is_senders } => claim(&speaker, address, is_senders, tables),
        LinkMessage::Question { sender, target } => {
            if !sender.is_unspecified() {
                claim(&speaker, sender, true, tables);
            }
            ask(&speaker, sender, target, tables);
            false
        }
        LinkMessage::RouterSolicitation => is_spared && bridge.flags & PORT_ROUTED == 0,
        LinkMessage::RouterAdvertisement => {
            mark(&bridge, PORT_ROUTED, tables);
            false
        }
        LinkMessage::Listening(Listening::Query) => {
            mark(&bridge, PORT_QUERIED, tables);
            false
        }
        LinkMessage::Listening(Listening::Report { is_routers, is_beyond }) => {
            if is_routers {
                mark(&bridge, PORT_ROUTED, tables);
            }
            is_spared && !is_beyond && bridge.flags & PORT_QUERIED == 0
        }
        LinkMessage::Other => false,
    }
}

/// Notes what the node itself says to a group by the bridge `bridge`. It is always heard.
#[inline(always)]
pub fn note_host<P: Packet, T: Tables>(packet: &mut P, frame: &Frame, bridge: &Port, tables: &T) {
    if bridge.flags & PORT_SPARING == 0 || frame.is_tagged() {
        return;
    }
    match link_message(packet, frame) {
        LinkMessage::Listening(Listening::Query) => mark(bridge, PORT_QUERIED, tables),
        LinkMessage::Announcement { address, .. } | LinkMessage::Question { sender: address, .. }
            if !address.is_unspecified() =>
        {
            let key = AddressKey::new(bridge.bridge, 0, address);
            match tables.owner(&key) {
                Some(owner) => tables.mark_port(&PortKey { ifindex: owner.ifindex }, PORT_FRESH, false),
                None => tables.mention(&key),
            }
        }
        _ => {}
    }
}

/// A frame says that its sender has an address, or (not `is_senders`) that another station has. Whether everybody may do without it.
#[inline(always)]
fn claim<T: Tables>(speaker: &Speaker<'_>, address: Address, is_senders: bool, tables: &T) -> bool {
    let key = AddressKey::new(speaker.port.bridge, 0, address);
    let is_own = speaker.is_container && is_senders;
    match tables.owner(&key) {
        Some(owner) if owner.ifindex == speaker.here && is_own => {
            speaker.is_spared && speaker.port.flags & PORT_FRESH != 0
        }
        // From now on others have two stations to choose from: all that either says of its addresses is heard.
        Some(owner) => {
            tables.mark_port(&PortKey { ifindex: owner.ifindex }, PORT_FRESH, false);
            tables.mark_port(&PortKey { ifindex: speaker.here }, PORT_FRESH, false);
            false
        }
        None if is_own && address.is(Address::link_local_of(speaker.port.mac)) => {
            speaker.is_spared && !tables.is_mentioned(&key)
        }
        None => {
            tables.mention(&key);
            false
        }
    }
}

/// A frame looks for an address: `sender` waits for its announcement if the neighbour proxy does not answer, or without a sender for an
/// objection, which looks the same.
#[inline(always)]
fn ask<T: Tables>(speaker: &Speaker<'_>, sender: Address, target: Address, tables: &T) {
    let key = AddressKey::new(speaker.port.bridge, 0, target);
    match tables.owner(&key) {
        Some(owner)
            if owner.ifindex != speaker.here && (sender.is_unspecified() || !is_answered(&key, tables)) =>
        {
            tables.mark_port(&PortKey { ifindex: owner.ifindex }, PORT_FRESH, false);
        }
        Some(_) => {}
        None if speaker.is_container && target.is(Address::link_local_of(speaker.port.mac)) => {}
        None => tables.mention(&key),
    }
}

/// Whether the neighbour proxy may answer for an address.
#[inline(always)]
fn is_answered<T: Tables>(key: &AddressKey, tables: &T) -> bool {
    let there = STATION_PEER_UP | STATION_MOVED | STATION_ASIDE;
    tables.resident(key, 0).is_some_and(|(_, station)| station.flags & there == STATION_PEER_UP)
}

/// Sets a bit of a bridge, unless it is set.
#[inline(always)]
fn mark<T: Tables>(bridge: &Port, bit: u32, tables: &T) {
    if bridge.flags & bit == 0 {
        tables.mark_port(&PortKey { ifindex: bridge.bridge }, bit, true);
    }
}
