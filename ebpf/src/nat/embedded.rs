//! An ICMP error, and the beginning of the packet that it is about (RFC 792; RFC 4443 section 3).

use crate::abi::translation::TupleKey;
use crate::wire::address::L4Port;
use crate::wire::packet::Packet;
use crate::wire::{
    EtherType, Fragment, Frame, HEADERS_BYTES, ICMP_CHECKSUM, IDENTIFIER, Icmp, Ip, Network, Protocol,
    TCP_CHECKSUM, Transport, UDP_CHECKSUM, Unreadable, echo, ipv4, ipv6, network, transport,
};

/// Bytes in front of the quoted packet.
const ERROR_HEADER_BYTES: u32 = 8;

/// [`Quote::checksum`] of a short quotation. Verifier: not 0, of which the compiler makes a comparison that bounds nothing.
pub const UNQUOTED: u32 = u32::MAX;

/// An ICMP error about a TCP, UDP or SCTP packet, or about an echo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quote {
    /// Offset of the error's own IP header.
    pub at: u32,
    /// The error's own IP header.
    pub ip: Ip,
    /// The quoted packet's tuple turned round: that of a packet which goes where the error goes.
    pub key: TupleKey,
    /// Offset of the quoted IP header.
    pub header: u32,
    /// Offset of the quoted ports, or of the identifier.
    pub ports: u32,
    /// Offset of the quoted transport checksum; [`UNQUOTED`] where the quotation ends before it, and for SCTP.
    pub checksum: u32,
}

/// Reads the error in `frame`, which came from `domain`. None for anything else and for what cannot be read.
#[inline(always)]
pub fn read<P: Packet>(packet: &mut P, frame: &Frame, domain: u32) -> Option<Quote> {
    if frame.is_tagged() || !matches!(frame.ether_type, EtherType::IPV4 | EtherType::IPV6) {
        return None;
    }
    let mut linear = false;
    // One place that reads, gone through twice at most: as in `flow`.
    loop {
        match attempt(packet, frame, domain) {
            Ok(quote) => return quote,
            Err(Unreadable::Truncated) if !linear && packet.linearize(HEADERS_BYTES) => linear = true,
            Err(_) => return None,
        }
    }
}

#[inline(always)]
fn attempt<P: Packet>(packet: &P, frame: &Frame, domain: u32) -> Result<Option<Quote>, Unreadable> {
    let mut ip = match network(packet, frame)? {
        Network::Ip(ip) if ip.fragment == Fragment::Whole => ip,
        _ => return Ok(None),
    };
    let is_v4 = ip.source.is_v4();
    let Transport::Icmp(Icmp::Other { kind }) = transport(packet, &ip)? else {
        return Ok(None);
    };
    if !is_error(ip.protocol, is_v4, kind) {
        return Ok(None);
    }
    // Verifier: where a header ended would be one more state of all that comes behind, twice.
    ip.payload = packet.forget(ip.payload);
    let header = ip.payload + ERROR_HEADER_BYTES;
    let mut quoted = if is_v4 { ipv4(packet, header)? } else { ipv6(packet, header)? };
    quoted.payload = packet.forget(quoted.payload);
    let (ports, checksum) = match quoted.protocol {
        _ if quoted.fragment == Fragment::Later => return Ok(None),
        Protocol::TCP => (quoted.payload, quoted.payload + TCP_CHECKSUM),
        Protocol::UDP => (quoted.payload, quoted.payload + UDP_CHECKSUM),
        // It covers what is not quoted, so nobody can look at it.
        Protocol::SCTP => (quoted.payload, UNQUOTED),
        Protocol::ICMP | Protocol::ICMPV6 => (quoted.payload + IDENTIFIER, quoted.payload + ICMP_CHECKSUM),
        _ => return Ok(None),
    };
    let [mut source, mut destination]: [L4Port; 2] = packet.load(ports).ok_or(Unreadable::Truncated)?;
    if quoted.protocol.is_icmp() {
        let Some(echo) = echo(packet, &quoted)? else { return Ok(None) };
        (source, destination) = (echo.source, echo.destination);
    }
    // Eight bytes behind the IP header are all that an old router quotes.
    let is_there = packet.load::<u16>(checksum).is_some();
    let key = TupleKey {
        domain,
        source_port: destination,
        destination_port: source,
        source: quoted.destination,
        destination: quoted.source,
        protocol: quoted.protocol.0,
        pad: [0; 3],
    };
    let checksum = if is_there { checksum } else { UNQUOTED };
    Ok(Some(Quote { at: frame.payload, ip, key, header, ports, checksum }))
}

/// Unreachable, too big, time exceeded, parameter problem.
#[inline(always)]
fn is_error(protocol: Protocol, is_v4: bool, kind: u8) -> bool {
    match protocol {
        Protocol::ICMP => is_v4 && matches!(kind, 3 | 11 | 12),
        _ => protocol == Protocol::ICMPV6 && !is_v4 && matches!(kind, 1..=4),
    }
}
