//! rewrite: all edits of a translation at once.
//!
//! Every check has passed and the Ethernet addresses are written ([`crate::stages::deliver::address`]): nothing here fails, and a
//! rewritten packet goes to its receiver's stack only.

use crate::abi::translation::TupleKey;
use crate::nat::segment::Segment;
use crate::wire::address::{Address, L4Port};
use crate::wire::checksum::{Change, updated};
use crate::wire::packet::{ChecksumUpdate, Packet, PortsUpdate};
use crate::wire::{IDENTIFIER, Ip, Protocol};

/// Half words of an IPv4 header without options, and places in it.
pub(super) type V4 = [u16; 10];
/// Half words of an IPv6 header.
pub(super) type V6 = [u16; 20];

/// Gives a packet, whose IP header is at `header`, the addresses and ports of `becomes`, and one hop less.
#[inline(always)]
pub fn rewrite<P: Packet>(packet: &mut P, header: u32, segment: &Segment, becomes: &TupleKey) {
    let Segment { ip, key, checksum, .. } = *segment;
    let ports = Change::NONE
        .port(key.source_port, becomes.source_port)
        .port(key.destination_port, becomes.destination_port);
    let Readdressed { addresses, header: rest, alone } =
        readdress(packet, header, &ip, (becomes.source, becomes.destination));
    let is_echo = ip.protocol.is_icmp();
    let at = if is_echo { ip.payload + IDENTIFIER } else { ip.payload };
    write_ports(packet, at, is_echo, (becomes.source_port, becomes.destination_port));
    if ip.protocol == Protocol::SCTP {
        // SCTP covers no address, and devices compute it by the same rule.
        return packet.update_sctp_checksum(PortsUpdate {
            header,
            field: checksum,
            ports: both(key.source_port, key.destination_port)
                ^ both(becomes.source_port, becomes.destination_port),
        });
    }
    packet.update_checksum(ChecksumUpdate {
        field: checksum,
        optional: ip.protocol == Protocol::UDP,
        alone,
        // ICMP for IPv4 has no pseudo header.
        addresses: if ip.protocol == Protocol::ICMP { Change::NONE } else { addresses },
        ports,
        header: rest,
    });
}

/// Writes the ports at `at`, or an echo's identifier: one of its ports is 0.
#[inline(always)]
pub(super) fn write_ports<P: Packet>(
    packet: &mut P,
    at: u32,
    is_echo: bool,
    (source, destination): (L4Port, L4Port),
) {
    packet.edit(at, |ends: &mut [L4Port; 2]| {
        if is_echo {
            ends[0] = L4Port::from_half(source.half() | destination.half());
        } else {
            *ends = [source, destination];
        }
    });
}

/// What changed in an IP header.
#[derive(Clone, Copy)]
pub(crate) struct Readdressed {
    /// The addresses.
    pub(crate) addresses: Change,
    /// All else, except its own checksum.
    pub(crate) header: Change,
    /// Whether no header checksum covers the addresses (IPv6).
    pub(crate) alone: bool,
}

/// Gives the IP header at `at`, which has been read as `ip`, other addresses and one hop less.
#[inline(always)]
pub(crate) fn readdress<P: Packet>(
    packet: &mut P,
    at: u32,
    ip: &Ip,
    (source, destination): (Address, Address),
) -> Readdressed {
    let addresses = Change::NONE.address(ip.source, source).address(ip.destination, destination);
    let alone = !ip.source.is_v4();
    let hop = if alone {
        let hop = Hop { old: [0, ip.hop_limit], new: [0, ip.hop_limit - 1] };
        packet.edit(at, |header: &mut V6| {
            let [next, _] = header[3].to_ne_bytes();
            header[3] = u16::from_ne_bytes([next, ip.hop_limit - 1]);
            write_v6(header, source, destination);
        });
        hop
    } else {
        let hop = Hop { old: [ip.hop_limit, ip.protocol.0], new: [ip.hop_limit - 1, ip.protocol.0] };
        packet.edit(at, |header: &mut V4| {
            header[4] = u16::from_ne_bytes(hop.new);
            header[5] = updated(header[5], hop.change(addresses));
            [header[6], header[7]] = source.v4();
            [header[8], header[9]] = destination.v4();
        });
        hop
    };
    Readdressed { addresses, header: hop.change(Change::NONE), alone }
}

/// Both ports as SCTP's checksum sees them.
#[inline(always)]
fn both(source: L4Port, destination: L4Port) -> u32 {
    u32::from(u16::from_le(source.half())) | u32::from(u16::from_le(destination.half())) << 16
}

/// Writes an IPv6 header's addresses.
#[inline(always)]
pub(super) fn write_v6(header: &mut V6, source: Address, destination: Address) {
    [header[4], header[5], header[6], header[7], header[8], header[9], header[10], header[11]] = source.v6();
    [header[12], header[13], header[14], header[15], header[16], header[17], header[18], header[19]] =
        destination.v6();
}

/// The half word with the hop limit in it, before and after.
#[derive(Clone, Copy)]
struct Hop {
    old: [u8; 2],
    new: [u8; 2],
}

impl Hop {
    #[inline(always)]
    const fn change(self, and: Change) -> Change {
        and.half(u16::from_ne_bytes(self.old), u16::from_ne_bytes(self.new))
    }
}
