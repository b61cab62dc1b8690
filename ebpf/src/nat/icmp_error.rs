//! requote: an ICMP error becomes another one, and so does what it quotes.

use crate::Tables;
use crate::abi::translation::TupleKey;
use crate::nat::connection::{Fate, fate};
use crate::nat::embedded::{Quote, UNQUOTED};
use crate::nat::rewrite::{V4, V6, readdress, write_ports, write_v6};
use crate::wire::address::Address;
use crate::wire::checksum::{Change, updated, updated_udp};
use crate::wire::packet::Packet;
use crate::wire::{ICMP_CHECKSUM, Protocol};

/// What a packet of the quotation's tuple becomes, and whose masqueraded connection it is of. None where no connection that
/// lives has it, or the error is not for whoever sent the quoted packet.
#[inline(always)]
pub fn becomes<T: Tables>(quote: &Quote, tables: &T) -> Option<(TupleKey, u32)> {
    if !quote.ip.destination.is(quote.key.destination) {
        return None;
    }
    let now = tables.boot_time();
    let protocol = Protocol(quote.key.protocol);
    let (becomes, holder) = tables.becomes(&quote.key)?;
    let mut other = becomes.reversed(becomes.domain);
    let fate = tables
        .follow(&quote.key, &mut other, 0, |mine, others| (fate(protocol, others, mine, false, now), None))?;
    (fate == Fate::Continues).then_some((becomes, holder))
}

/// Whom the error is from, as its receiver sees it: the other side itself is who its packets are from, and a router on
/// the way there is who it is.
#[inline(always)]
pub fn sender(quote: &Quote, becomes: &TupleKey) -> Address {
    if quote.ip.source.is(quote.key.source) { becomes.source } else { quote.ip.source }
}

/// Gives the error in a frame `source`, the destination of `becomes` and one hop less. What it quotes gets the tuple that
/// `becomes` is when it is turned round.
#[inline(always)]
pub fn rewrite<P: Packet>(packet: &mut P, quote: &Quote, source: Address, becomes: &TupleKey) {
    let Quote { ip, key, .. } = quote;
    let addresses =
        Change::NONE.address(key.source, becomes.source).address(key.destination, becomes.destination);
    let ports = Change::NONE
        .port(key.source_port, becomes.source_port)
        .port(key.destination_port, becomes.destination_port);
    // The error's own checksum covers all of the quotation, checksums included.
    let mut covered = addresses.and(ports);
    let protocol = Protocol(key.protocol);
    write_ports(packet, quote.ports, protocol.is_icmp(), (becomes.destination_port, becomes.source_port));
    if quote.checksum != UNQUOTED {
        packet.edit(quote.checksum, |sum: &mut u16| {
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
        packet.edit(quote.header, |header: &mut V4| {
            let sum = updated(header[5], addresses);
            covered = covered.half(header[5], sum);
            header[5] = sum;
            [header[6], header[7]] = becomes.destination.v4();
            [header[8], header[9]] = becomes.source.v4();
        });
        packet.edit(ip.payload + ICMP_CHECKSUM, |sum: &mut u16| *sum = updated(*sum, covered));
        readdress(packet, quote.at, ip, ends);
    } else {
        packet.edit(quote.header, |header: &mut V6| write_v6(header, becomes.destination, becomes.source));
        let outer = readdress(packet, quote.at, ip, ends);
        let covered = covered.and(outer.addresses);
        packet.edit(ip.payload + ICMP_CHECKSUM, |sum: &mut u16| *sum = updated(*sum, covered));
        packet.tell_sum(outer.header);
    }
}
