//! Neighbour discovery (RFC 4861): a solicitation becomes an advertisement.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::request::{PAYLOAD, Request};
use crate::wire::address::{Address, Mac};
use crate::wire::checksum::{Change, updated};
use crate::wire::packet::Packet;
use crate::wire::{Frame, Protocol};

const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
/// RFC 4861: with any other value a router has forwarded it, and it is invalid.
const HOP_LIMIT: u8 = 255;
/// The first byte of every multicast address.
const MULTICAST: u8 = 0xff;
/// Bytes of a message with one option: of the request and of the reply.
const MESSAGE_BYTES: u16 = 32;
/// An option that holds the sender's Ethernet address, and one that holds the target's: kind and length in eights of bytes.
const SOURCE_ADDRESS: [u8; 2] = [1, 1];
const TARGET_ADDRESS: [u8; 2] = [2, 1];
/// Solicited and override. The router flag is not set: it is not known.
const SOLICITED_OVERRIDE: [u8; 2] = [0x60, 0];

/// What comes before the addresses of an IPv6 header; half words in network order.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
struct Head {
    version_class: u16,
    flow_label: u16,
    payload_bytes: u16,
    next: u8,
    hop_limit: u8,
}

/// The beginning of a message; half words in network order.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
struct Message {
    kind: [u8; 2],
    checksum: u16,
    flags: [u8; 2],
    reserved: u16,
}

/// An Ethernet address as an option.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
struct LinkAddress {
    option: [u8; 2],
    mac: Mac,
}

/// An IPv6 address as it stands in a packet.
type V6 = [u16; 8];

/// Where things are in the frame.
const SOURCE: u32 = PAYLOAD + 8;
const DESTINATION: u32 = PAYLOAD + 24;
const MESSAGE: u32 = PAYLOAD + 40;
const TARGET: u32 = PAYLOAD + 48;
const LINK_ADDRESS: u32 = PAYLOAD + 64;
/// Where a solicitation ends.
pub(super) const END: u32 = PAYLOAD + 72;

/// The request; none where it is no solicitation to a group, or has any option but its sender's Ethernet address.
#[inline(always)]
pub(super) fn request<P: Packet>(packet: &P, frame: &Frame) -> Option<Request> {
    let head: Head = packet.load(PAYLOAD)?;
    let plain = u16::from_be(head.version_class) >> 12 == 6
        && Protocol(head.next) == Protocol::ICMPV6
        && head.hop_limit == HOP_LIMIT
        && u16::from_be(head.payload_bytes) == MESSAGE_BYTES;
    if !plain {
        return None;
    }
    let message: Message = packet.load(MESSAGE)?;
    let from: LinkAddress = packet.load(LINK_ADDRESS)?;
    let [first, _]: [u8; 2] = packet.load(DESTINATION)?;
    let solicits = first == MULTICAST
        && message.kind == [SOLICITATION, 0]
        && from.option == SOURCE_ADDRESS
        && from.mac.is(frame.source);
    if !solicits {
        return None;
    }
    let (asker, target): (V6, V6) = (packet.load(SOURCE)?, packet.load(TARGET)?);
    Some(Request { asker: Address::in_v6_packet(asker)?, target: Address::in_v6_packet(target)? })
}

/// Writes the reply in the place of the request, in pieces: a program's stack is small. The checksum is updated, so a wrong one
/// stays wrong.
#[inline(always)]
pub(super) fn write<P: Packet>(packet: &mut P, frame: &Frame, request: &Request, mac: Mac) -> Option<()> {
    let asked: Message = packet.load(MESSAGE)?;
    let group: V6 = packet.load(DESTINATION)?;
    let ([a, b, c], [d, e, f]) = (frame.source.halves(), mac.halves());
    let change = Change::NONE
        .address(request.asker, request.target)
        .address(Address::from_v6(group), request.asker)
        .half(half(asked.kind), half([ADVERTISEMENT, 0]))
        .half(half(asked.flags), half(SOLICITED_OVERRIDE))
        .half(asked.reserved, 0)
        .half(half(SOURCE_ADDRESS), half(TARGET_ADDRESS))
        .half(a, d)
        .half(b, e)
        .half(c, f);
    let answer = Message {
        kind: [ADVERTISEMENT, 0],
        checksum: updated(asked.checksum, change),
        flags: SOLICITED_OVERRIDE,
        reserved: 0,
    };
    let written = packet.store(MESSAGE, &answer)
        && packet.store(LINK_ADDRESS, &LinkAddress { option: TARGET_ADDRESS, mac })
        && packet.store(SOURCE, &request.target.v6())
        && packet.store(DESTINATION, &request.asker.v6());
    written.then_some(())
}

#[inline(always)]
fn half(bytes: [u8; 2]) -> u16 {
    u16::from_ne_bytes(bytes)
}
