//! The Ethernet header and up to two tags behind it (IEEE 802.3, 802.1Q, 802.1ad).

use super::Unreadable;
use crate::address::Mac;
use crate::packet::{Packet, Tag};

/// Tags that are looked behind.
pub const MAX_TAGS: usize = 2;

const HEADER_BYTES: u32 = 14;
const TAG_BYTES: u32 = 4;

/// What a frame says that it carries, in host order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EtherType(pub u16);

impl EtherType {
    /// Internet Protocol version 4.
    pub const IPV4: Self = Self(0x0800);
    /// Address resolution (RFC 826).
    pub const ARP: Self = Self(0x0806);
    /// A customer tag (802.1Q).
    pub const VLAN: Self = Self(0x8100);
    /// Internet Protocol version 6.
    pub const IPV6: Self = Self(0x86dd);
    /// A service tag (802.1ad).
    pub const SERVICE_VLAN: Self = Self(0x88a8);

    /// Whether a tag follows instead of a payload.
    #[inline(always)]
    pub const fn is_tag(self) -> bool {
        matches!(self, Self::VLAN | Self::SERVICE_VLAN)
    }
}

/// An Ethernet frame's addresses and where its payload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// To whom.
    pub destination: Mac,
    /// From whom.
    pub source: Mac,
    /// What is behind the tags; a tag's own type when there are more than [`MAX_TAGS`] in the bytes.
    pub ether_type: EtherType,
    /// The tag in the metadata, which is outside all others.
    pub tag: Option<Tag>,
    /// How many tags are in the bytes.
    pub inline_tags: u32,
    /// Offset of the payload.
    pub payload: u32,
}

impl Frame {
    /// Whether it carries any tag.
    #[inline(always)]
    pub const fn is_tagged(&self) -> bool {
        self.tag.is_some() || self.inline_tags != 0
    }
}

/// Reads the Ethernet header.
///
/// # Errors
/// [`Unreadable::Truncated`] for a frame that ends inside the header or inside a tag.
#[inline(always)]
pub fn frame<P: Packet>(packet: &P) -> Result<Frame, Unreadable> {
    let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, t0, t1] =
        packet.load::<14>(0).ok_or(Unreadable::Truncated)?;
    let mut frame = Frame {
        destination: Mac::new([d0, d1, d2, d3, d4, d5]),
        source: Mac::new([s0, s1, s2, s3, s4, s5]),
        ether_type: EtherType(u16::from_be_bytes([t0, t1])),
        tag: packet.tag(),
        inline_tags: 0,
        payload: HEADER_BYTES,
    };
    for _ in 0..MAX_TAGS {
        if !frame.ether_type.is_tag() {
            break;
        }
        let [_, _, t0, t1] = packet.load::<4>(frame.payload).ok_or(Unreadable::Truncated)?;
        frame.ether_type = EtherType(u16::from_be_bytes([t0, t1]));
        frame.inline_tags += 1;
        frame.payload += TAG_BYTES;
    }
    Ok(frame)
}
