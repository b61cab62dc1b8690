//! icmp error: an ICMP error about a packet of a translated connection, and its rewriting.
//!
//! The error embeds a packet that one side received, so the embedded tuple reversed is that of a packet which this side sends: the error is
//! translated as such a packet. It does not extend the connection's life (RFC 5508 REQ-7).

use crate::Tables;
use crate::abi::translation::{TupleKey, is_tracked};
use crate::nat::connection::{Fate, fate};
use crate::nat::embedded::{IcmpError, NOT_EMBEDDED};
use crate::nat::rewrite::{V4, V6, readdress, write_ports, write_v6};
use crate::wire::address::Address;
use crate::wire::checksum::{Change, updated, updated_udp};
use crate::wire::packet::Packet;
use crate::wire::{ICMP_CHECKSUM, Protocol};

/// The translation of the embedded tuple reversed, and the holder of its masqueraded connection. None where no live connection has it,
/// or the error is not for the embedded packet's sender.
#[inline(always)]
pub fn becomes<T: Tables>(error: &IcmpError, tables: &T) -> Option<(TupleKey, u32)> {
    if !error.ip.destination.is(error.key.destination) {
        return None;
    }
    let now = tables.boot_time();
    let protocol = Protocol(error.key.protocol);
    let (becomes, holder) = tables.becomes(&error.key)?;
    // Connection tracking translates it.
    if is_tracked(holder) {
        return None;
    }
    let mut other = becomes.reversed(becomes.domain);
    let fate = tables
        .follow(&error.key, &mut other, None, |mine, others| fate(protocol, others, mine, false, now))?;
    (fate == Fate::Continues).then_some((becomes, holder))
}

/// The error's source, as its receiver sees it: the connection's other side is translated as its packets are, a router on the way is
/// not.
#[inline(always)]
pub fn sender(error: &IcmpError, becomes: &TupleKey) -> Address {
    if error.ip.source.is(error.key.source) { becomes.source } else { error.ip.source }
}

/// Gives the error `source`, the destination of `becomes` and one hop less. The embedded packet gets `becomes` reversed.
#[inline(always)]
pub fn rewrite<P: Packet>(packet: &mut P, error: &IcmpError, source: Address, becomes: &TupleKey) {
    let IcmpError { ip, key, .. } = error;
    let addresses =
        Change::NONE.address(key.source, becomes.source).address(key.destination, becomes.destination);
    let ports = Change::NONE
        .port(key.source_port, becomes.source_port)
        .port(key.destination_port, becomes.destination_port);
    // The error's own checksum covers the embedded packet, checksums included.
    let mut covered = addresses.and(ports);
    let protocol = Protocol(key.protocol);
    write_ports(packet, error.ports, protocol.is_icmp(), (becomes.destination_port, becomes.source_port));
    if error.checksum != NOT_EMBEDDED {
        packet.edit(error.checksum, |sum: &mut u16| {
            // ICMP for IPv4 has no pseudo header.
            let change = if protocol == Protocol::ICMP { ports } else { addresses.and(ports) };
            let new =
                if protocol == Protocol::UDP { updated_udp(*sum, change) } else { updated(*sum, change) };
            covered = covered.half(*sum, new);
            *sum = new;
        });
    }
    let ends = (source, becomes.destination);
    if ip.source.is_v4() {
        packet.edit(error.header, |header: &mut V4| {
            let sum = updated(header[5], addresses);
            covered = covered.half(header[5], sum);
            header[5] = sum;
            [header[6], header[7]] = becomes.destination.v4();
            [header[8], header[9]] = becomes.source.v4();
        });
        packet.edit(ip.payload + ICMP_CHECKSUM, |sum: &mut u16| *sum = updated(*sum, covered));
        readdress(packet, error.at, ip, ends);
    } else {
        packet.edit(error.header, |header: &mut V6| write_v6(header, becomes.destination, becomes.source));
        let outer = readdress(packet, error.at, ip, ends);
        let covered = covered.and(outer.addresses);
        packet.edit(ip.payload + ICMP_CHECKSUM, |sum: &mut u16| *sum = updated(*sum, covered));
        packet.adjust_sum(outer.header);
    }
}
