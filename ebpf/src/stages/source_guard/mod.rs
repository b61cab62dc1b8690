//! source guard: whether the addresses that a frame claims are its container's own (`ipspoofchk`). Reports call the stage
//! `vouch`.
//!
//! A frame claims its IP source, its ARP sender (with the hardware address), the target of a neighbour advertisement, and what a
//! probe without a source asks for (RFC 5227, RFC 4862). The unspecified address is free, because probes and DHCP use it. Of
//! link-local IPv6 addresses the container has its own only ([`link_local`]). Router advertisements, redirects and DHCP servers'
//! messages are a `trusted` port's.

pub mod link_local;

use crate::abi::{AddressKey, PORT_IP_CHECK, PORT_TRUSTED, Port};
use crate::verdict::{DropReason, Stop};
use crate::wire::address::Address;
use crate::wire::packet::Packet;
use crate::wire::{Frame, HEADERS_BYTES, Ip, NeighborDiscovery, Network, Unreadable};
use crate::{Tables, wire};

/// What a frame claims; unspecified addresses fill up.
struct Claims {
    /// Its source.
    source: Address,
    /// What it announces, or asks for without a source.
    target: Address,
}

/// Why a frame is refused before its addresses are looked up.
enum Refusal {
    Truncated,
    Spoofed,
    Untrusted,
}

impl From<Unreadable> for Refusal {
    #[inline(always)]
    fn from(unreadable: Unreadable) -> Self {
        match unreadable {
            Unreadable::Truncated => Self::Truncated,
            Unreadable::Malformed => Self::Spoofed,
        }
    }
}

/// Lets a frame from the port `here` on if it claims its container's addresses only.
///
/// # Errors
/// Drops a frame that claims another address or cannot be read, and what only a `trusted` port may send.
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
            Ok(claims) if are_own(&claims, port, here, tables) => return Ok(()),
            Err(Refusal::Truncated) if !linear && packet.linearize(HEADERS_BYTES) => linear = true,
            Err(Refusal::Untrusted) => return Err(Stop::Drop(DropReason::Untrusted)),
            Ok(_) | Err(_) => return Err(Stop::Drop(DropReason::AddressSpoofed)),
        }
    }
}

#[inline(always)]
fn claims<P: Packet>(packet: &P, frame: &Frame, port: &Port) -> Result<Claims, Refusal> {
    let none = Address::default();
    match wire::network(packet, frame)? {
        Network::Ip(ip) => {
            // Verifier: each number of extension headers would be a state of all that follows.
            let ip = Ip { payload: packet.forget(ip.payload), ..ip };
            if port.flags & PORT_TRUSTED == 0 && wire::configures_hosts(packet, &ip)? {
                return Err(Refusal::Untrusted);
            }
            Ok(Claims { source: ip.source, target: target(packet, &ip)? })
        }
        Network::Arp(arp) if arp.sender_mac.is(port.mac) => {
            let target = if arp.sender.is_unspecified() { arp.target } else { none };
            Ok(Claims { source: arp.sender, target })
        }
        Network::Arp(_) => Err(Refusal::Spoofed),
        // More tags than are looked behind.
        Network::Other if frame.ether_type.is_tag() => Err(Refusal::Spoofed),
        Network::Other => Ok(Claims { source: none, target: none }),
    }
}

/// The address that a neighbour discovery message announces or probes.
#[inline(always)]
fn target<P: Packet>(packet: &P, ip: &Ip) -> Result<Address, Refusal> {
    match wire::neighbor_discovery(packet, ip)? {
        // From nobody's address it would be a probe that no neighbour objects to.
        Some(NeighborDiscovery::Advertisement { .. }) if ip.source.is_unspecified() => Err(Refusal::Spoofed),
        Some(NeighborDiscovery::Advertisement { target }) => Ok(target),
        Some(NeighborDiscovery::Solicitation { target }) if ip.source.is_unspecified() => Ok(target),
        Some(NeighborDiscovery::Solicitation { .. }) | None => Ok(Address::default()),
    }
}

#[inline(always)]
fn are_own<T: Tables>(claims: &Claims, port: &Port, here: u32, tables: &T) -> bool {
    // The target first: with a source it is an announcement, without one a probe.
    let is_probe = claims.source.is_unspecified();
    is_own(claims.target, is_probe, port, here, tables) && is_own(claims.source, false, port, here, tables)
}

#[inline(always)]
fn is_own<T: Tables>(claim: Address, is_probe: bool, port: &Port, here: u32, tables: &T) -> bool {
    if claim.is_unspecified() {
        return true;
    }
    match tables.owner(&AddressKey::new(port.bridge, port.vid, claim)) {
        Some(owner) => owner.ifindex == here,
        None => claim.is_link_local() && link_local::is_own(claim, is_probe, port, here, tables),
    }
}
