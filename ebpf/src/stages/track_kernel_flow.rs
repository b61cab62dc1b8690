//! track kernel flow: records which flows are the kernel's. Reports call the stage `notice`.
//!
//! A unicast packet that reaches a container by the kernel's path with another container's source address was translated by
//! the host (a Service's DNAT), or its flow began before the fast path knew the receiver. Either way the kernel's conntrack
//! has the flow's state, so the reply must not take the fast path.

use crate::Tables;
use crate::abi::{AddressKey, Port, PortKey};
use crate::stages::read_flow::{FlowOf, read_flow};
use crate::wire::Frame;
use crate::wire::packet::Packet;

/// The owner of the source address of a frame that came by the kernel's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// A container of the same L2 domain.
    Container,
    /// Any other host.
    Other,
    /// Unknown: a fragment, an ICMP error, a header that cannot be read.
    Unclear,
}

/// Records the flow of a frame for the container behind `receiver`, if another container sent it.
#[inline(always)]
pub fn track<P: Packet, T: Tables>(
    packet: &mut P,
    frame: &Frame,
    port: &Port,
    receiver: u32,
    tables: &T,
) -> Sender {
    if frame.destination.is_group() {
        return Sender::Other;
    }
    let (key, source) = match read_flow(packet, frame, port.bridge) {
        FlowOf::Flow { key, source } => (key, source),
        FlowOf::Fragment | FlowOf::Unclear => return Sender::Unclear,
        FlowOf::None => return Sender::Other,
    };
    let Some(owner) = tables.owner(&AddressKey::new(port.bridge, port.vid, source)) else {
        return Sender::Other;
    };
    if owner.ifindex == receiver || tables.is_kernel_flow(&key) {
        return Sender::Container;
    }
    // The flow first: a port that looks up before there is an entry would let the reply onto the fast path.
    tables.record_kernel_flow(&key);
    tables.require_flow_lookup(&PortKey { ifindex: receiver });
    tables.require_flow_lookup(&PortKey { ifindex: owner.ifindex });
    Sender::Container
}
