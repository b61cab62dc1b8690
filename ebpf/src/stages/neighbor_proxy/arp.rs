//! ARP (RFC 826): "who has" becomes "is at".

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::request::{PAYLOAD, Request};
use crate::wire;
use crate::wire::address::Mac;
use crate::wire::packet::Packet;
use crate::wire::{ArpOperation, Frame};

/// Where the reply begins to differ: behind the kinds and lengths of addresses.
const OPERATION: u32 = PAYLOAD + 6;

/// Where a request ends.
pub(super) const END: u32 = PAYLOAD + 28;

/// From the operation on; half words in network order.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
struct Rest {
    operation: u16,
    sender_mac: Mac,
    sender: [u16; 2],
    target_mac: Mac,
    target: [u16; 2],
}

/// The request; none where it is no request, or its sender has another MAC address than its frame.
#[inline(always)]
pub(super) fn request<P: Packet>(packet: &P, frame: &Frame) -> Option<Request> {
    let arp = wire::arp(packet, PAYLOAD).ok()?;
    (arp.operation == ArpOperation::Request && arp.sender_mac.is(frame.source))
        .then_some(Request { asker: arp.sender, target: arp.target })
}

/// Writes the reply in the place of the request.
#[inline(always)]
pub(super) fn write<P: Packet>(packet: &mut P, frame: &Frame, request: &Request, mac: Mac) -> Option<()> {
    let answer = Rest {
        operation: 2_u16.to_be(),
        sender_mac: mac,
        sender: request.target.v4(),
        target_mac: frame.source,
        target: request.asker.v4(),
    };
    packet.store(OPERATION, &answer).then_some(())
}
