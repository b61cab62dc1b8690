//! What a frame to a group says of its own link: who has an address, who asks for one, where routers are, and who listens to which groups
//! (RFC 5227, RFC 4861, RFC 3810).

use zerocopy::{FromBytes, Immutable, KnownLayout};

use super::arp::arp;
use super::ethernet::{EtherType, Frame};
use super::ip::Protocol;
use super::listeners::{self, Listening};
use crate::wire::address::{Address, Mac};
use crate::wire::packet::Packet;

/// Offsets of an IPv6 header, and of a message behind it, in a frame without inline tags. Verifier: constants.
const HEADER: u32 = 14;
const MESSAGE: u32 = HEADER + 40;
/// The address that a solicitation or an advertisement is about, and the option behind it.
const TARGET: u32 = MESSAGE + 8;
const OPTION: u32 = TARGET + 16;

/// Bytes that are made readable: reports are the longest.
const READABLE_BYTES: u32 = listeners::END;

const ROUTER_SOLICITATION: u8 = 133;
const ROUTER_ADVERTISEMENT: u8 = 134;
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
/// RFC 4861: with any other value a router has forwarded it, and it is invalid.
const HOP_LIMIT: u8 = 255;
/// An option that holds the target's Ethernet address: kind and length in eights of bytes.
const TARGET_ADDRESS: [u8; 2] = [2, 1];
/// The next header of hop-by-hop options, without which no host or bridge heeds MLD.
const HOP_BY_HOP: Protocol = Protocol(0);

/// An Ethernet address as an option.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
struct LinkAddress {
    option: [u8; 2],
    mac: Mac,
}

/// A message about the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkMessage {
    /// Somebody has an address: gratuitous ARP, or a neighbour advertisement.
    Announcement {
        /// The address.
        address: Address,
        /// Whether it is said to be at the frame's own source address.
        is_senders: bool,
    },
    /// Somebody looks for an address: an ARP packet of any other kind, or a neighbour solicitation.
    Question {
        /// The sender's; unspecified in a duplicate address probe.
        sender: Address,
        /// The one that is looked for.
        target: Address,
    },
    /// Looks for routers.
    RouterSolicitation,
    /// From a router.
    RouterAdvertisement,
    /// About listeners to groups.
    Listening(Listening),
    /// Anything else.
    Other,
}

/// Reads it. What cannot be read is anything else.
#[inline(always)]
pub fn link_message<P: Packet>(packet: &mut P, frame: &Frame) -> LinkMessage {
    if frame.inline_tags != 0 || !matches!(frame.ether_type, EtherType::ARP | EtherType::IPV6) {
        return LinkMessage::Other;
    }
    // What cannot be made readable is not read.
    let _ = packet.linearize(READABLE_BYTES);
    let said = if frame.ether_type == EtherType::ARP { of_arp(packet, frame) } else { of_v6(packet, frame) };
    said.unwrap_or(LinkMessage::Other)
}

#[inline(always)]
fn of_arp<P: Packet>(packet: &P, frame: &Frame) -> Option<LinkMessage> {
    let arp = arp(packet, HEADER).ok()?;
    let is_senders = arp.sender_mac.is(frame.source);
    if !arp.sender.is_unspecified() && (arp.sender.is(arp.target) || !is_senders) {
        return Some(LinkMessage::Announcement { address: arp.sender, is_senders });
    }
    Some(LinkMessage::Question { sender: arp.sender, target: arp.target })
}

#[inline(always)]
fn of_v6<P: Packet>(packet: &P, frame: &Frame) -> Option<LinkMessage> {
    let [next, hop_limit]: [u8; 2] = packet.load(HEADER + 6)?;
    if Protocol(next) == HOP_BY_HOP {
        return Some(LinkMessage::Listening(listeners::listening(packet)));
    }
    let [kind, code]: [u8; 2] = packet.load(MESSAGE)?;
    if Protocol(next) != Protocol::ICMPV6 || hop_limit != HOP_LIMIT || code != 0 {
        return None;
    }
    match kind {
        ROUTER_SOLICITATION => Some(LinkMessage::RouterSolicitation),
        ROUTER_ADVERTISEMENT => Some(LinkMessage::RouterAdvertisement),
        ADVERTISEMENT => {
            let address = Address::in_v6_packet(packet.load(TARGET)?)?;
            let at: Option<LinkAddress> = packet.load(OPTION);
            let is_senders = at.is_some_and(|at| at.option == TARGET_ADDRESS && at.mac.is(frame.source));
            Some(LinkMessage::Announcement { address, is_senders })
        }
        SOLICITATION => {
            let sender = Address::in_v6_packet(packet.load(HEADER + 8)?)?;
            Some(LinkMessage::Question { sender, target: Address::in_v6_packet(packet.load(TARGET)?)? })
        }
        _ => None,
    }
}
