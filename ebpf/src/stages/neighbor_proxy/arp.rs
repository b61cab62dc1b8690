//! ARP (RFC 826): "who has" becomes "is at".

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{PAYLOAD, Question};
use crate::wire;
use crate::wire::address::Mac;
use crate::wire::packet::Packet;
use crate::wire::{ArpOperation, Frame};

/// Where what changes begins, behind what both have alike: the kinds and lengths of addresses.
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

/// Who is asked for; none where it is no request, or one whose sender has another address than its frame.
#[inline(always)]
pub(super) fn question<P: Packet>(packet: &P, frame: &Frame) -> Option<Question> {
    let arp = wire::arp(packet, PAYLOAD).ok()?;
    (arp.operation == ArpOperation::Request && arp.sender_mac.is(frame.source))
        .then_some(Question { asker: arp.sender, target: arp.target })
}

/// Writes the answer in the place of the question.
#[inline(always)]
pub(super) fn tell<P: Packet>(packet: &mut P, frame: &Frame, question: &Question, mac: Mac) -> Option<()> {
    let answer = Rest {
        operation: 2_u16.to_be(),
        sender_mac: mac,
        sender: question.target.v4(),
        target_mac: frame.source,
        target: question.asker.v4(),
    };
    packet.store(OPERATION, &answer).then_some(())
}
