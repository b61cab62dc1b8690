//! requote: an ICMP error becomes another one, and so does what it quotes.

use crate::abi::translation::TupleKey;
use crate::address::Address;
use crate::packet::Packet;
use crate::parse::{ICMP_CHECKSUM, Protocol, Quote, UNQUOTED};
use crate::translate::checksum::{Change, updated, updated_udp};
use crate::translate::rewrite::{V4, V6, readdress, write_ports, write_v6};

/// Gives the error in a frame `source`, the destination of `becomes` and one hop less. What it quotes gets the tuple that
/// `becomes` is when it is turned round.
#[inline(always)]
pub fn requote<P: Packet>(packet: &mut P, quote: &Quote, source: Address, becomes: &TupleKey) {
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
