//! port change: all edits of a connection of the kernel's that has another port outside.
//!
//! Its addresses stay, and so does its hop limit: the packet goes on as if the node had sent it so.

use crate::abi::translation::TupleKey;
use crate::nat::rewrite::write_ports;
use crate::nat::segment::Segment;
use crate::wire::Protocol;
use crate::wire::checksum::Change;
use crate::wire::packet::{ChecksumUpdate, Packet};

/// Gives a TCP or UDP packet the ports of `becomes`.
#[inline(always)]
pub fn write<P: Packet>(packet: &mut P, segment: &Segment, becomes: &TupleKey) {
    let Segment { ip, key, checksum, .. } = *segment;
    let ports = Change::NONE
        .port(key.source_port, becomes.source_port)
        .port(key.destination_port, becomes.destination_port);
    write_ports(packet, ip.payload, false, (becomes.source_port, becomes.destination_port));
    packet.update_checksum(ChecksumUpdate {
        field: checksum,
        optional: ip.protocol == Protocol::UDP,
        alone: false,
        addresses: Change::NONE,
        ports,
        header: Change::NONE,
    });
}
