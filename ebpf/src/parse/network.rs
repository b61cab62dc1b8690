//! What a frame carries.

use super::Unreadable;
use super::arp::{Arp, arp};
use super::ethernet::{EtherType, Frame};
use super::ip::Ip;
use super::ipv4::ipv4;
use super::ipv6::ipv6;
use crate::packet::Packet;

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
