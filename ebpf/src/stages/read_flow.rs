//! Which flow a frame belongs to.

use crate::abi::{End, FlowKey};
use crate::wire::address::{Address, L4Port};
use crate::wire::packet::Packet;
use crate::wire::{
    Fragment, Frame, HEADERS_BYTES, Icmp, Ip, Network, Transport, Unreadable, network, transport,
};

/// What a frame has to do with flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowOf {
    /// It belongs to this one.
    Flow {
        /// The flow.
        key: FlowKey,
        /// The address that the frame comes from.
        source: Address,
    },
    /// It is a fragment: whoever translates the flow has to see all of its datagram.
    Fragment,
    /// It is IP and its flow cannot be told: an ICMP error, or a header that cannot be read.
    Unclear,
    /// It is not IP: no flow was ever translated for it.
    None,
}

/// Tells a frame's flow in the L2 domain `bridge`, making its headers readable if they are not.
#[inline(always)]
pub fn read_flow<P: Packet>(packet: &mut P, frame: &Frame, bridge: u32) -> FlowOf {
    let mut linear = false;
    // One place that reads, gone through twice at most: inlined twice it would not fit BPF's stack.
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
        Some((source, destination)) => {
            FlowOf::Flow { key: FlowKey::of(bridge, ip.protocol.0, source, destination), source: ip.source }
        }
        None => FlowOf::Unclear,
    })
}

#[inline(always)]
fn ends<P: Packet>(packet: &P, ip: &Ip) -> Result<Option<(End, End)>, Unreadable> {
    let (source, destination) = match transport(packet, ip)? {
        Transport::Tcp { source, destination, .. } | Transport::Datagram { source, destination } => {
            (source, destination)
        }
        Transport::Icmp(Icmp::Echo { identifier }) => (identifier, identifier),
        Transport::Other => (L4Port::default(), L4Port::default()),
        Transport::Icmp(Icmp::Other { .. }) | Transport::Later => return Ok(None),
    };
    Ok(Some((End { address: ip.source, port: source }, End { address: ip.destination, port: destination })))
}
