//! The frame: its Ethernet header and up to two tags behind it (IEEE 802.3, 802.1Q, 802.1ad).

use zerocopy::{FromBytes, Immutable, KnownLayout};

use super::Unreadable;
use crate::wire::address::Mac;
use crate::wire::ethernet_header::EthernetHeader;
use crate::wire::packet::{Readable, Tag};

/// Tags that are parsed.
pub const MAX_TAGS: usize = 2;

/// A tag as it stands in the frame, behind the type that announced it; both in network order.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
struct TagHeader {
    tci: u16,
    ether_type: u16,
}

/// An EtherType, in host order.
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
    /// The destination.
    pub destination: Mac,
    /// The source.
    pub source: Mac,
    /// The type behind the tags; a tag's own type where there are more than [`MAX_TAGS`] inline.
    pub ether_type: EtherType,
    /// The tag in the metadata, which is the outermost.
    pub tag: Option<Tag>,
    /// How many tags are inline.
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

/// The outermost tag, in the metadata or inline; none on an untagged frame.
#[inline(always)]
pub fn outermost<P: Readable>(packet: &P, frame: &Frame) -> Option<Tag> {
    if frame.tag.is_some() || frame.inline_tags == 0 {
        return frame.tag;
    }
    let header: EthernetHeader = packet.load(0)?;
    let tag: TagHeader = packet.load(size_of::<EthernetHeader>() as u32)?;
    let tci = u16::from_be(tag.tci);
    let service = EtherType(u16::from_be(header.ether_type)) == EtherType::SERVICE_VLAN;
    Some(if service { Tag::service(tci) } else { Tag::customer(tci) })
}

/// Reads the Ethernet header.
///
/// # Errors
/// [`Unreadable::Truncated`] for a frame that ends inside the header or inside a tag.
#[inline(always)]
pub fn frame<P: Readable>(packet: &P) -> Result<Frame, Unreadable> {
    let header = packet.ethernet().ok_or(Unreadable::Truncated)?;
    let mut frame = Frame {
        destination: header.destination,
        source: header.source,
        ether_type: EtherType(u16::from_be(header.ether_type)),
        tag: packet.tag(),
        inline_tags: 0,
        payload: size_of::<EthernetHeader>() as u32,
    };
    for _ in 0..MAX_TAGS {
        if !frame.ether_type.is_tag() {
            break;
        }
        let tag: TagHeader = packet.load(frame.payload).ok_or(Unreadable::Truncated)?;
        frame.ether_type = EtherType(u16::from_be(tag.ether_type));
        frame.inline_tags += 1;
        frame.payload += size_of::<TagHeader>() as u32;
    }
    Ok(frame)
}
