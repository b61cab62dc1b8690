//! track kernel flow: records which flows are the kernel's. Reports call the stage `notice`.
//!
//! A unicast packet that reaches a container by the kernel's path with another container's source address was translated by
//! the host (a Service's DNAT), or its flow began before the fast path knew the receiver. Either way the kernel's conntrack
//! has the flow's state, so the reply must not take the fast path.
//!
//! What the node, or a host beyond it, sends to a container's own address is recorded too, in `INCOMING_FLOWS`: the answer is not masqueraded,
//! and is none to a host port, whatever port it is for. So is what the node sends by a bridge to a host beyond its uplink. Only datagrams need
//! it: a TCP answer begins nothing, for it is no SYN.

use crate::Tables;
use crate::abi::{
    AFFINITY_APART, AddressKey, FlowKey, PORT_FOREIGN, PORT_HEEDED, PORT_MASQUERADED, PORT_OPENED, PORT_WIRE,
    Port, PortKey, StationKey,
};
use crate::stages::accept::{self, Asked, Wanted};
use crate::stages::read_flow::{Flow, FlowOf, read_flow};
use crate::stages::{incoming, kernel_share};
use crate::wire::packet::Packet;
use crate::wire::{Frame, Protocol};

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

/// Records the flow of a frame for the container behind `receiver`, if another container sent it, or if it began outside.
#[inline(always)]
pub fn track<P: Packet, T: Tables>(
    packet: &mut P,
    frame: &Frame,
    port: &Port,
    receiver: u32,
    tables: &T,
) -> Sender {
    track_and(packet, frame, (port, receiver, true), tables, |flow, origin| {
        if port.flags & PORT_HEEDED != 0 && !frame.is_tagged() && is_wire(origin, port, tables) {
            // Nothing is known of who is beyond an uplink, so the receiver pays.
            accept::note(&Asked { flow, ports: [origin, receiver] }, port.slot, tables);
        } else if port.flags & PORT_OPENED != 0 && !frame.is_tagged() && is_beyond(origin, port, tables) {
            // The kernel may have translated it ([`crate::nat::carry`]). The receiver pays here, too.
            let is_masqueraded = port.flags & PORT_MASQUERADED != 0;
            let wanted = if is_masqueraded { Wanted::Translation } else { Wanted::Nothing };
            accept::note_and_ask(&Asked { flow, ports: [origin, receiver] }, port.slot, wanted, tables);
        }
        note_incoming(&flow.key, tables);
        Sender::Other
    })
}

/// How a frame came to the bridge device that sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The node's stack has sent or routed it.
    FromStack,
    /// By a port of the bridge, which it never left.
    Bridged,
    /// The programs have translated it.
    Translated,
}

/// The same of a frame that the bridge device sends. Who sent what never left the bridge is a container, too, although nobody's of ours,
/// unless the programs have given it an address of the node.
#[inline(always)]
pub fn track_host<P: Packet, T: Tables>(
    packet: &mut P,
    frame: &Frame,
    port: &Port,
    (receiver, way): (u32, Way),
    tables: &T,
) -> Sender {
    track_and(packet, frame, (port, receiver, false), tables, |flow, _| match way {
        Way::FromStack => {
            note_incoming(&flow.key, tables);
            Sender::Other
        }
        Way::Bridged if !tables.is_local(&flow.source) => Sender::Container,
        Way::Bridged | Way::Translated => Sender::Other,
    })
}

/// Records the flow of a frame that leaves by the uplink `here`, if a container sent it.
#[inline(always)]
pub fn track_leaving<P: Packet, T: Tables>(
    packet: &mut P,
    frame: &Frame,
    port: &Port,
    here: u32,
    tables: &T,
) {
    track_and(packet, frame, (port, here, true), tables, |_, _| Sender::Other);
}

/// Records the flow of a datagram that the node's stack has sent or routed, and that leaves by an uplink of the bridge.
#[inline(always)]
pub fn track_sent<P: Packet, T: Tables>(packet: &mut P, frame: &Frame, port: &Port, tables: &T) {
    if frame.destination.is_group() {
        return;
    }
    if let FlowOf::Flow(flow) = read_flow(packet, frame, port.bridge) {
        note_incoming(&flow.key, tables);
    }
}

/// Records the flow of a frame if a container sent it. `of_other` says who has sent what no container of ours has: it gets the flow, and the ifindex
/// by which it has come. `is_through` says that the frame has come out of all hooks.
#[inline(always)]
fn track_and<P: Packet, T: Tables>(
    packet: &mut P,
    frame: &Frame,
    (port, receiver, is_through): (&Port, u32, bool),
    tables: &T,
    of_other: impl FnOnce(&Flow, u32) -> Sender,
) -> Sender {
    if frame.destination.is_group() {
        return Sender::Other;
    }
    let flow = match read_flow(packet, frame, port.bridge) {
        FlowOf::Flow(flow) => flow,
        FlowOf::Fragment | FlowOf::Unclear => return Sender::Unclear,
        FlowOf::None => return Sender::Other,
    };
    let Some(owner) = tables.owner(&AddressKey::new(port.bridge, port.vid, flow.source)) else {
        return of_other(&flow, packet.origin());
    };
    if owner.ifindex == receiver || tables.is_kernel_flow(&flow.key) {
        return Sender::Container;
    }
    let origin = packet.origin();
    if is_through && let Some(sender) = heeded_sender(origin, port, tables) {
        // Somebody else who sends by this address accepts nothing for its owner, and takes nothing from it.
        if origin == owner.ifindex && !frame.is_tagged() {
            accept::note(&Asked { flow: &flow, ports: [origin, receiver] }, sender.slot, tables);
        }
        return Sender::Container;
    }
    // The flow first: a port that looks up before there is an entry would let the reply onto the fast path.
    let ends = [owner.ifindex, receiver].map(|ifindex| PortKey { ifindex });
    record(&flow.key, port.bridge, (origin, ends), tables);
    ends.iter().for_each(|end| tables.require_flow_lookup(end));
    Sender::Container
}

/// The other port of the bridge by which a frame has come to `port`, where others' rules are heeded at one of the two. What the kernel has routed comes
/// from the bridge.
#[inline(always)]
fn heeded_sender<T: Tables>(origin: u32, port: &Port, tables: &T) -> Option<Port> {
    let sender = tables.port(&PortKey { ifindex: origin })?;
    let is_bridged = sender.bridge == port.bridge && origin != port.bridge;
    (is_bridged && (sender.flags | port.flags) & PORT_HEEDED != 0).then_some(sender)
}

/// Whether a frame for `port` has come in by an uplink of its bridge.
#[inline(always)]
fn is_wire<T: Tables>(origin: u32, port: &Port, tables: &T) -> bool {
    tables
        .port(&PortKey { ifindex: origin })
        .is_some_and(|sender| sender.flags & PORT_WIRE != 0 && sender.bridge == port.bridge)
}

/// Whether a frame for `port` has come from beyond its bridge: neither the node has sent it, nor anybody on the bridge.
#[inline(always)]
fn is_beyond<T: Tables>(origin: u32, port: &Port, tables: &T) -> bool {
    origin != 0 && tables.port(&PortKey { ifindex: origin }).is_none_or(|sender| sender.bridge != port.bridge)
}

/// Records a flow that comes to its receiver from the owner of its source address. Where who pays for it has its share of the room already, all
/// that this one sends and gets is the kernel's.
#[inline(always)]
fn record<T: Tables>(
    key: &FlowKey,
    bridge: u32,
    (origin, [owner, receiver]): (u32, [PortKey; 2]),
    tables: &T,
) {
    let (payer, port) = payer(bridge, (origin, [owner, receiver]), tables);
    // In VLANs there is no kernel's way.
    if !kernel_share::hold(key, port.slot, tables) && port.vid == 0 {
        tables.put_apart(&payer, &StationKey { bridge, vid: port.vid, mac: port.mac });
    }
}

/// Who pays for a flow: the container by whose port it came in, as no address is proof of that; what was routed, the owner of the source address.
/// An answer to a container that is apart shows first that there is a flow: it is that one's.
#[inline(always)]
fn payer<T: Tables>(
    bridge: u32,
    (origin, [owner, receiver]): (u32, [PortKey; 2]),
    tables: &T,
) -> (PortKey, Port) {
    let origin = PortKey { ifindex: origin };
    let is_containers = |port: &Port| {
        port.bridge == bridge && origin.ifindex != bridge && port.flags & (PORT_FOREIGN | PORT_WIRE) == 0
    };
    let (sender, port) = match tables.port(&origin).filter(is_containers) {
        Some(port) => (origin, port),
        // An address may have moved to a station that is nobody's of ours: these share what nobody has used of half the room.
        None => (owner, tables.port(&owner).unwrap_or(Port { bridge, ..Port::default() })),
    };
    match tables.port(&receiver) {
        Some(receivers) if receivers.affinity == AFFINITY_APART && port.affinity != AFFINITY_APART => {
            (receiver, receivers)
        }
        _ => (sender, port),
    }
}

/// Records the flow of a datagram that no container has sent.
#[inline(always)]
fn note_incoming<T: Tables>(key: &FlowKey, tables: &T) {
    if Protocol(key.protocol) == Protocol::UDP {
        incoming::note(key, tables);
    }
}
