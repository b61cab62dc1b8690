//! The transport header: as much of it as identifies a flow.

use zerocopy::{FromBytes, Immutable, KnownLayout};

use super::Unreadable;
use super::ip::{Fragment, Ip, Protocol};
use crate::wire::address::L4Port;
use crate::wire::packet::Packet;

/// Byte of the TCP header that holds its flags.
const TCP_FLAGS: u32 = 13;

/// Where the checksum is in a TCP header.
pub const TCP_CHECKSUM: u32 = 16;

/// Where the checksum is in a UDP header.
pub const UDP_CHECKSUM: u32 = 6;

/// The TCP header's flags (RFC 9293 section 3.1).
pub const TCP_FIN: u8 = 1;
/// See [`TCP_FIN`].
pub const TCP_SYN: u8 = 2;
/// See [`TCP_FIN`].
pub const TCP_RST: u8 = 4;
/// See [`TCP_FIN`].
pub const TCP_ACK: u8 = 16;

/// The beginning of TCP, UDP and SCTP headers.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
struct Ports {
    source: L4Port,
    destination: L4Port,
}

/// An ICMP header; an echo's identifier and sequence number.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
struct IcmpHeader {
    kind: u8,
    code: u8,
    checksum: u16,
    identifier: L4Port,
    sequence: u16,
}

/// The header behind an IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP; `flags` is its eight flag bits, FIN lowest.
    Tcp {
        /// The source port.
        source: L4Port,
        /// The destination port.
        destination: L4Port,
        /// CWR, ECE, URG, ACK, PSH, RST, SYN, FIN.
        flags: u8,
    },
    /// UDP or SCTP.
    Datagram {
        /// The source port.
        source: L4Port,
        /// The destination port.
        destination: L4Port,
    },
    /// ICMP of either version.
    Icmp(Icmp),
    /// A protocol without ports.
    Other,
    /// A later fragment, without a transport header.
    Later,
}

/// An ICMP message, by its meaning for flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Icmp {
    /// An echo request or reply: a flow of its own.
    Echo {
        /// The same in request and reply.
        identifier: L4Port,
    },
    /// An error, a neighbour discovery message, or any other.
    Other {
        /// The type.
        kind: u8,
    },
}

/// Reads the header behind `ip`.
///
/// # Errors
/// [`Unreadable::Truncated`] when it ends too soon.
#[inline(always)]
pub fn transport<P: Packet>(packet: &P, ip: &Ip) -> Result<Transport, Unreadable> {
    if ip.fragment == Fragment::Later {
        return Ok(Transport::Later);
    }
    match ip.protocol {
        Protocol::TCP => {
            let Ports { source, destination } = packet.load(ip.payload).ok_or(Unreadable::Truncated)?;
            // Verifier: of a load of one byte the compiler makes a comparison that bounds nothing.
            let word: u16 = packet.load(ip.payload + TCP_FLAGS - 1).ok_or(Unreadable::Truncated)?;
            let flags = u16::from_be(word) as u8;
            Ok(Transport::Tcp { source, destination, flags })
        }
        Protocol::UDP | Protocol::SCTP => {
            let Ports { source, destination } = packet.load(ip.payload).ok_or(Unreadable::Truncated)?;
            Ok(Transport::Datagram { source, destination })
        }
        Protocol::ICMP => icmp(packet, ip, 8, 0),
        Protocol::ICMPV6 => icmp(packet, ip, 128, 129),
        _ => Ok(Transport::Other),
    }
}

#[inline(always)]
fn icmp<P: Packet>(packet: &P, ip: &Ip, request: u8, reply: u8) -> Result<Transport, Unreadable> {
    let header: IcmpHeader = packet.load(ip.payload).ok_or(Unreadable::Truncated)?;
    Ok(Transport::Icmp(if header.kind == request || header.kind == reply {
        Icmp::Echo { identifier: header.identifier }
    } else {
        Icmp::Other { kind: header.kind }
    }))
}
