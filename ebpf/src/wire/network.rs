//! A frame's payload.

use super::Unreadable;
use super::arp::{Arp, arp};
use super::ethernet::{EtherType, Frame};
use super::ip::Ip;
use super::ipv4::ipv4;
use super::ipv6::ipv6;
use crate::wire::address::Address;
use crate::wire::packet::Packet;

/// Offset of the destination in an IPv4 header, and in an IPv6 one.
const V4_DESTINATION: u32 = 16;
const V6_DESTINATION: u32 = 24;

/// Bytes of the type, which stands right before the payload.
const TYPE_BYTES: u32 = 2;

/// A frame's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// IPv4 or IPv6.
    Ip(Ip),
    /// ARP.
    Arp(Arp),
    /// Anything else.
    Other,
}

/// Reads what is behind the Ethernet header.
///
/// # Errors
/// As [`ipv4`], [`ipv6`] and [`arp`].
#[inline(always)]
pub fn network<P: Packet>(packet: &P, frame: &Frame) -> Result<Network, Unreadable> {
    match frame.ether_type {
        EtherType::IPV4 => ipv4(packet, frame.payload).map(Network::Ip),
        EtherType::IPV6 => ipv6(packet, frame.payload).map(Network::Ip),
        EtherType::ARP => arp(packet, frame.payload).map(Network::Arp),
        _ => Ok(Network::Other),
    }
}

/// The payload's destination address, by its first header alone; unspecified where it is not IP.
///
/// # Errors
/// [`Unreadable::Truncated`], and [`Unreadable::Malformed`] for a mapped IPv4 address in an IPv6 header.
#[inline(always)]
pub fn destination<P: Packet>(packet: &P, frame: &Frame) -> Result<Address, Unreadable> {
    // Verifier: read again, or what is learned of it here is a state of all that follows.
    let ether_type: u16 = packet.load(frame.payload - TYPE_BYTES).ok_or(Unreadable::Truncated)?;
    let address = match EtherType(u16::from_be(ether_type)) {
        EtherType::IPV4 => packet.load(frame.payload + V4_DESTINATION).map(Address::from_v4),
        EtherType::IPV6 => {
            let address = packet.load(frame.payload + V6_DESTINATION).ok_or(Unreadable::Truncated)?;
            Some(Address::in_v6_packet(address).ok_or(Unreadable::Malformed)?)
        }
        _ => Some(Address::default()),
    };
    address.ok_or(Unreadable::Truncated)
}
