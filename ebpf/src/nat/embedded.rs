//! embedded: reads an ICMP error and the beginning of the packet that it embeds (RFC 792; RFC 4443 section 3).

use crate::abi::translation::TupleKey;
use crate::wire::address::L4Port;
use crate::wire::packet::Packet;
use crate::wire::{
    EtherType, Fragment, Frame, HEADERS_BYTES, ICMP_CHECKSUM, IDENTIFIER, Icmp, Ip, Network, Protocol,
    TCP_CHECKSUM, Transport, UDP_CHECKSUM, Unreadable, echo, ipv4, ipv6, network, transport,
};

/// Bytes in front of the embedded packet.
const ERROR_HEADER_BYTES: u32 = 8;

/// [`IcmpError::checksum`] where it is not embedded. Verifier: not 0, of which the compiler makes a comparison that bounds nothing.
pub const NOT_EMBEDDED: u32 = u32::MAX;

/// An ICMP error about a TCP, UDP or SCTP packet, or about an echo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IcmpError {
    /// Offset of the error's own IP header.
    pub at: u32,
    /// The error's own IP header.
    pub ip: Ip,
    /// The embedded packet's tuple reversed: that of a packet which goes where the error goes.
    pub key: TupleKey,
    /// Offset of the embedded IP header.
    pub header: u32,
    /// Offset of the embedded ports, or of the identifier.
    pub ports: u32,
    /// Offset of the embedded transport checksum; [`NOT_EMBEDDED`] where the packet is cut before it, and for SCTP.
    pub checksum: u32,
}

/// Reads the error in `frame`, which came from `domain`. None for any other packet, and for one that cannot be read.
#[inline(always)]
pub fn read<P: Packet>(packet: &mut P, frame: &Frame, domain: u32) -> Option<IcmpError> {
    if frame.is_tagged() || !matches!(frame.ether_type, EtherType::IPV4 | EtherType::IPV6) {
        return None;
    }
    let mut linear = false;
    // Verifier: one call, run twice at most, as in `read_flow`.
    loop {
        match attempt(packet, frame, domain) {
            Ok(error) => return error,
            Err(Unreadable::Truncated) if !linear && packet.linearize(HEADERS_BYTES) => linear = true,
            Err(_) => return None,
        }
    }
}

#[inline(always)]
fn attempt<P: Packet>(packet: &P, frame: &Frame, domain: u32) -> Result<Option<IcmpError>, Unreadable> {
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
    // Verifier: forgotten, or each number of extension headers is a state of all that follows, twice.
    ip.payload = packet.forget(ip.payload);
    let header = ip.payload + ERROR_HEADER_BYTES;
    let mut inner = if is_v4 { ipv4(packet, header)? } else { ipv6(packet, header)? };
    inner.payload = packet.forget(inner.payload);
    let (ports, checksum) = match inner.protocol {
        _ if inner.fragment == Fragment::Later => return Ok(None),
        Protocol::TCP => (inner.payload, inner.payload + TCP_CHECKSUM),
        Protocol::UDP => (inner.payload, inner.payload + UDP_CHECKSUM),
        // It covers the whole packet, of which only the beginning is embedded.
        Protocol::SCTP => (inner.payload, NOT_EMBEDDED),
        Protocol::ICMP | Protocol::ICMPV6 => (inner.payload + IDENTIFIER, inner.payload + ICMP_CHECKSUM),
        _ => return Ok(None),
    };
    let [mut source, mut destination]: [L4Port; 2] = packet.load(ports).ok_or(Unreadable::Truncated)?;
    if inner.protocol.is_icmp() {
        let Some(echo) = echo(packet, &inner)? else { return Ok(None) };
        (source, destination) = (echo.source, echo.destination);
    }
    // Old routers embed eight bytes behind the IP header only.
    let is_there = packet.load::<u16>(checksum).is_some();
    let key = TupleKey {
        domain,
        source_port: destination,
        destination_port: source,
        source: inner.destination,
        destination: inner.source,
        protocol: inner.protocol.0,
        pad: [0; 3],
    };
    let checksum = if is_there { checksum } else { NOT_EMBEDDED };
    Ok(Some(IcmpError { at: frame.payload, ip, key, header, ports, checksum }))
}

/// Unreachable, too big, time exceeded, parameter problem.
#[inline(always)]
fn is_error(protocol: Protocol, is_v4: bool, kind: u8) -> bool {
    match protocol {
        Protocol::ICMP => is_v4 && matches!(kind, 3 | 11 | 12),
        _ => protocol == Protocol::ICMPV6 && !is_v4 && matches!(kind, 1..=4),
    }
}
