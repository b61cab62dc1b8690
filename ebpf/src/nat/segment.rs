//! segment: all that has to be read of a packet before it is translated.

use crate::abi::translation::TupleKey;
use crate::abi::{End, FlowKey};
use crate::nat::connection::opens;
use crate::wire::packet::Packet;
use crate::wire::sctp::SCTP_CHECKSUM;
use crate::wire::{
    Echo, EtherType, Fragment, Frame, HEADERS_BYTES, ICMP_CHECKSUM, Ip, Network, Protocol, Step,
    TCP_CHECKSUM, Transport, UDP_CHECKSUM, Unreadable, V6_PAYLOAD, echo, network, tcp, transport,
};

/// Packets without flags count as a SYN where they may begin a connection.
const OPENS: u8 = 2;

/// A TCP, UDP or SCTP packet, or an ICMP echo: a whole one, or a datagram's first fragment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Its IP header.
    pub ip: Ip,
    /// Its tuple.
    pub key: TupleKey,
    /// See [`Segment::step`]; of all else than TCP the flags are [`OPENS`] or none. Verifier: no `Option`, of which the compiler may
    /// store uninitialized bytes.
    step: Step,
    /// Offset of the transport checksum; all of it can be read directly.
    pub checksum: u32,
}

impl Segment {
    /// Whether it is TCP's.
    #[inline(always)]
    pub fn is_tcp(&self) -> bool {
        self.ip.protocol == Protocol::TCP
    }

    /// Whether it is UDP's.
    #[inline(always)]
    pub fn is_datagram(&self) -> bool {
        self.ip.protocol == Protocol::UDP
    }

    /// What it says of its connection, or [`None`] for a protocol without connections.
    #[inline(always)]
    pub fn step(&self) -> Option<Step> {
        self.is_tcp().then_some(self.step)
    }

    /// TCP's flags, FIN lowest; 0 of others.
    #[inline(always)]
    pub fn flags(&self) -> u8 {
        if self.is_tcp() { self.step.flags } else { 0 }
    }

    /// Whether it may begin a connection: a TCP SYN, a datagram, an echo request.
    #[inline(always)]
    pub fn opens(&self) -> bool {
        opens(self.step.flags)
    }

    /// Its flow's key on the bridge that it came from, as [`crate::stages::read_flow`] has it for such a packet.
    #[inline(always)]
    pub fn flow(&self) -> FlowKey {
        let key = &self.key;
        let is_echo = self.ip.protocol.is_icmp();
        let source = End { address: key.source, port: key.source_port };
        let port = if is_echo { key.source_port } else { key.destination_port };
        FlowKey::of(key.domain, key.protocol, source, End { address: key.destination, port })
    }
}

/// Reads the packet in `frame`, which came from `domain`. None for other protocols, a packet without a transport header, and one that
/// cannot be read.
#[inline(always)]
pub fn read<P: Packet>(packet: &mut P, frame: &Frame, domain: u32) -> Option<Segment> {
    if frame.is_tagged() || !matches!(frame.ether_type, EtherType::IPV4 | EtherType::IPV6) {
        return None;
    }
    let mut linear = false;
    // Verifier: one call, run twice at most, as in `read_flow`.
    loop {
        match attempt(packet, frame, domain) {
            Ok(segment) => return segment,
            Err(Unreadable::Truncated) if !linear && packet.linearize(HEADERS_BYTES) => linear = true,
            Err(_) => return None,
        }
    }
}

#[inline(always)]
fn attempt<P: Packet>(packet: &P, frame: &Frame, domain: u32) -> Result<Option<Segment>, Unreadable> {
    let ip = match network(packet, frame)? {
        Network::Ip(ip) if ip.fragment == Fragment::Whole || can_begin(&ip) => ip,
        _ => return Ok(None),
    };
    let (source_port, destination_port, step, checksum) = if ip.protocol == Protocol::TCP {
        let ([source, destination], step) = tcp(packet, frame.payload, &ip).ok_or(Unreadable::Truncated)?;
        (source, destination, step, ip.payload + TCP_CHECKSUM)
    } else {
        match transport(packet, &ip)? {
            Transport::Datagram { source, destination } if ip.protocol == Protocol::UDP => {
                (source, destination, without_connection(true), ip.payload + UDP_CHECKSUM)
            }
            Transport::Datagram { source, destination } => {
                let _: u16 = packet.load(ip.payload + SCTP_CHECKSUM + 2).ok_or(Unreadable::Truncated)?;
                (source, destination, without_connection(true), ip.payload + SCTP_CHECKSUM)
            }
            Transport::Icmp(_) => {
                let Some(Echo { source, destination, is_request }) = echo(packet, &ip)? else {
                    return Ok(None);
                };
                (source, destination, without_connection(is_request), ip.payload + ICMP_CHECKSUM)
            }
            _ => return Ok(None),
        }
    };
    let _: u16 = packet.load(checksum).ok_or(Unreadable::Truncated)?;
    let key = TupleKey {
        domain,
        source_port,
        destination_port,
        source: ip.source,
        destination: ip.destination,
        protocol: ip.protocol.0,
        pad: [0; 3],
    };
    Ok(Some(Segment { ip, key, step, checksum }))
}

/// Of a packet without flags, which may begin a connection or not.
#[inline(always)]
const fn without_connection(may_begin: bool) -> Step {
    Step { flags: if may_begin { OPENS } else { 0 }, number: 0, acknowledges: 0 }
}

/// Whether a first fragment identifies the later ones.
#[inline(always)]
fn can_begin(ip: &Ip) -> bool {
    ip.fragment == Fragment::First && (ip.source.is_v4() || ip.payload == V6_PAYLOAD)
}
