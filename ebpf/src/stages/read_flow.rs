//! flow lookup: the flow that a frame belongs to.

use crate::abi::{End, FlowKey};
use crate::wire::address::{Address, L4Port};
use crate::wire::packet::Packet;
use crate::wire::{
    EtherType, Fragment, Frame, HEADERS_BYTES, Icmp, Ip, Network, Transport, Unreadable, network, transport,
};

/// Bytes of an IPv4 header without options (RFC 791).
pub const V4_HEADER: u32 = 20;
/// Bytes of an IPv6 header (RFC 8200).
pub const V6_HEADER: u32 = 40;

/// A flow, and what a frame of it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The flow.
    pub key: FlowKey,
    /// The frame's source address.
    pub source: Address,
    /// The flag bits of TCP, FIN lowest; 0 of others.
    pub flags: u8,
    /// Whether its IP header has neither options nor extension headers behind it.
    pub is_plain: bool,
}

/// A frame's flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowOf {
    /// The frame belongs to a flow.
    Flow(Flow),
    /// A fragment: a translated flow's datagram has to be seen whole.
    Fragment,
    /// IP of an unknown flow: an ICMP error, or a header that cannot be read.
    Unclear,
    /// Not IP: never translated.
    None,
}

/// The flow of a frame in the L2 domain `bridge`. Makes the headers readable if they are not.
#[inline(always)]
pub fn read_flow<P: Packet>(packet: &mut P, frame: &Frame, bridge: u32) -> FlowOf {
    let mut linear = false;
    // Verifier: one call, run twice at most. Inlined twice it would not fit the stack.
    loop {
        match attempt(packet, frame, bridge) {
            Ok(flow) => return flow,
            Err(Unreadable::Truncated) if !linear && packet.linearize(HEADERS_BYTES) => linear = true,
            Err(_) => return FlowOf::Unclear,
        }
    }
}

#[inline(always)]
fn attempt<P: Packet>(packet: &P, frame: &Frame, bridge: u32) -> Result<FlowOf, Unreadable> {
    let ip = match network(packet, frame)? {
        Network::Ip(ip) if ip.fragment != Fragment::Whole => return Ok(FlowOf::Fragment),
        Network::Ip(ip) => ip,
        Network::Arp(_) | Network::Other => return Ok(FlowOf::None),
    };
    Ok(match ends(packet, &ip)? {
        Some((source, destination, flags)) => FlowOf::Flow(Flow {
            key: FlowKey::of(bridge, ip.protocol.0, source, destination),
            source: ip.source,
            flags,
            is_plain: ip.payload - frame.payload == header(frame),
        }),
        None => FlowOf::Unclear,
    })
}

/// Bytes of an IP header without options.
#[inline(always)]
fn header(frame: &Frame) -> u32 {
    if frame.ether_type == EtherType::IPV6 { V6_HEADER } else { V4_HEADER }
}

/// Both ends, and TCP's flags.
#[inline(always)]
fn ends<P: Packet>(packet: &P, ip: &Ip) -> Result<Option<(End, End, u8)>, Unreadable> {
    let (source, destination, flags) = match transport(packet, ip)? {
        Transport::Tcp { source, destination, flags } => (source, destination, flags),
        Transport::Datagram { source, destination } => (source, destination, 0),
        Transport::Icmp(Icmp::Echo { identifier }) => (identifier, identifier, 0),
        Transport::Other => (L4Port::default(), L4Port::default(), 0),
        Transport::Icmp(Icmp::Other { .. }) | Transport::Later => return Ok(None),
    };
    let end = |address, port| End { address, port };
    Ok(Some((end(ip.source, source), end(ip.destination, destination), flags)))
}
