//! What both versions of IP have in common.

use crate::wire::address::Address;

/// An IP protocol number (IANA "Assigned Internet Protocol Numbers").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Protocol(pub u8);

impl Protocol {
    /// ICMP for IPv4 (RFC 792).
    pub const ICMP: Self = Self(1);
    /// TCP (RFC 9293).
    pub const TCP: Self = Self(6);
    /// UDP (RFC 768).
    pub const UDP: Self = Self(17);
    /// ICMP for IPv6 (RFC 4443).
    pub const ICMPV6: Self = Self(58);
    /// SCTP (RFC 9260).
    pub const SCTP: Self = Self(132);

    /// Whether it is ICMP of either version.
    #[inline(always)]
    pub const fn is_icmp(self) -> bool {
        matches!(self, Self::ICMP | Self::ICMPV6)
    }
}

/// Which part of a datagram a packet holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fragment {
    /// All of it.
    #[default]
    Whole,
    /// The first part: the transport header is there, the payload's end is not.
    First,
    /// A later part: no transport header follows the IP header.
    Later,
}

/// An IP header, with its options or extension headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ip {
    /// The source.
    pub source: Address,
    /// The destination.
    pub destination: Address,
    /// The payload's protocol, behind any extension headers.
    pub protocol: Protocol,
    /// Time to live, or hop limit.
    pub hop_limit: u8,
    /// Which part of its datagram this is.
    pub fragment: Fragment,
    /// Offset of the payload: the transport header, unless this is a later fragment.
    pub payload: u32,
}
