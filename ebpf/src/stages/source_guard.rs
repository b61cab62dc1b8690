//! source guard: whether the addresses that a frame claims are its container's own (`ipspoofchk`). Reports call the stage
//! `vouch`.
//!
//! A frame claims its IP source, its ARP sender (with the hardware address), and the target of a neighbour advertisement.
//! The unspecified address is free, because duplicate address detection, ARP probes and DHCP use it; so are link-local
//! IPv6 addresses, which containers assign themselves.

use crate::abi::{AddressKey, PORT_IP_CHECK, Port};
use crate::verdict::{DropReason, Stop};
use crate::wire::address::Address;
use crate::wire::packet::Packet;
use crate::wire::{Frame, NeighborDiscovery, Network, Unreadable};
use crate::{Tables, wire};

/// Enough for Ethernet, two tags, IPv6 with a few extension headers, and a neighbour advertisement.
const HEADERS_BYTES: u32 = 192;

/// Lets a frame from the port `here` on if it claims its container's addresses only.
///
/// # Errors
/// Drops a frame that claims another address, and one that cannot be read.
#[inline(always)]
pub fn check<P: Packet, T: Tables>(
    packet: &mut P,
    frame: &Frame,
    port: &Port,
    here: u32,
    tables: &T,
) -> Result<(), Stop> {
    if port.flags & PORT_IP_CHECK == 0 {
        return Ok(());
    }
    let mut linear = false;
    loop {
        match claims(packet, frame, port) {
            Ok(claims) if claims.iter().all(|claim| is_own(*claim, port, here, tables)) => return Ok(()),
            Err(Unreadable::Truncated) if !linear && packet.linearize(HEADERS_BYTES) => linear = true,
            Ok(_) | Err(_) => return Err(Stop::Drop(DropReason::AddressSpoofed)),
        }
    }
}

/// The addresses that a frame claims; unspecified ones fill up.
#[inline(always)]
fn claims<P: Packet>(packet: &P, frame: &Frame, port: &Port) -> Result<[Address; 2], Unreadable> {
    let none = Address::default();
    match wire::network(packet, frame)? {
        Network::Ip(ip) => match wire::neighbor_discovery(packet, &ip)? {
            Some(NeighborDiscovery::Advertisement { target }) => Ok([ip.source, target]),
            Some(NeighborDiscovery::Solicitation { .. }) | None => Ok([ip.source, none]),
        },
        Network::Arp(arp) if arp.sender_mac.is(port.mac) => Ok([arp.sender, none]),
        Network::Arp(_) => Err(Unreadable::Malformed),
        // More tags than are looked behind.
        Network::Other if frame.ether_type.is_tag() => Err(Unreadable::Malformed),
        Network::Other => Ok([none, none]),
    }
}

#[inline(always)]
fn is_own<T: Tables>(claim: Address, port: &Port, here: u32, tables: &T) -> bool {
    claim.is_unspecified()
        || claim.is_link_local()
        || tables
            .owner(&AddressKey::new(port.bridge, port.vid, claim))
            .is_some_and(|owner| owner.ifindex == here)
}
