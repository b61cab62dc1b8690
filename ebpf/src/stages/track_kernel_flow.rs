//! notice: which flows has the kernel made its own?
//!
//! A unicast packet that reaches a container by the kernel's way, although another container of the same L2 domain has
//! its source address, was translated by the host (a Service's DNAT) or began before the fast path knew its receiver.
//! Either way the kernel's conntrack holds its state, so the answer must not take the fast path.

use crate::Tables;
use crate::abi::{AddressKey, Port, PortKey};
use crate::stages::read_flow::{FlowOf, read_flow};
use crate::wire::Frame;
use crate::wire::packet::Packet;

/// Whose source address a frame by the kernel's way has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// A container's of the same L2 domain.
    Container,
    /// Anybody else's.
    Other,
    /// It cannot be told: a fragment, an ICMP error, a header that cannot be read.
    Unclear,
}

/// Remembers the flow of a frame on its way to the container behind `receiver`, if it comes from another container.
#[inline(always)]
pub fn kernel_flow<P: Packet, T: Tables>(
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
    // The flow first: a port that asks before there is an answer would let the reply onto the fast path.
    tables.note_kernel_flow(&key);
    tables.ask_from_now_on(&PortKey { ifindex: receiver });
    tables.ask_from_now_on(&PortKey { ifindex: owner.ifindex });
    Sender::Container
}
