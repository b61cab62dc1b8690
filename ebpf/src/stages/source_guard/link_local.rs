//! A checked port's link-local addresses: that of its MAC address, and one that it has chosen itself.
//!
//! A container chooses one by duplicate address detection (RFC 4862): it asks whether anybody has the address. The port keeps the
//! first one. Nobody's address may be taken so: an address that is made of a MAC address is its station's, and an advertisement
//! that answers the question takes the address away again. Until that time is over, the address may not be used.

use crate::Tables;
use crate::abi::{LinkLocal, PORT_IP_CHECK, Port, PortKey};
use crate::stages::port::Missing;
use crate::wire;
use crate::wire::EtherType;
use crate::wire::address::Address;
use crate::wire::packet::Packet;

/// How long neighbours may object, in nanoseconds: less than a container waits (RetransTimer, RFC 4861 section 10).
pub const OBJECTION: u64 = 900_000_000;

/// Whether a link-local address without an owner in `ADDRESSES` is the port's. A probe makes it so, if the port has chosen none.
#[inline(always)]
pub(super) fn is_own<T: Tables>(claim: Address, is_probe: bool, port: &Port, here: u32, tables: &T) -> bool {
    if claim.is(Address::link_local_of(port.mac)) {
        return true;
    }
    let key = PortKey { ifindex: here };
    let now = tables.boot_time();
    match tables.link_local(&key) {
        Some(chosen) => {
            chosen.address.is(claim) && (is_probe || now.saturating_sub(chosen.since) >= OBJECTION)
        }
        None => {
            is_probe
                && !claim.is_of_mac()
                && tables.choose_link_local(&key, &LinkLocal { address: claim, since: now })
        }
    }
}

/// Takes the address that the port `here` has chosen away if the packet towards it says that a neighbour has it.
#[inline(always)]
pub fn hear<P: Packet, T: Tables>(packet: &P, here: u32, missing: Missing, tables: &T) {
    if missing == Missing::Pass {
        return;
    }
    let Some(header) = packet.ethernet() else { return };
    if !header.destination.is_group() || EtherType(u16::from_be(header.ether_type)) != EtherType::IPV6 {
        return;
    }
    let key = PortKey { ifindex: here };
    let Some(port) = tables.port(&key) else { return };
    // A hairpin brings the container its own advertisements.
    if port.flags & PORT_IP_CHECK == 0 || header.source.is(port.mac) {
        return;
    }
    let Some(target) = wire::advertised(packet) else { return };
    let Some(chosen) = tables.link_local(&key) else { return };
    if chosen.address.is(target) && tables.boot_time().saturating_sub(chosen.since) < OBJECTION {
        tables.forget_link_local(&key);
    }
}
