//! What a stage may do with a frame.

use core::num::NonZeroU32;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::wire::EthernetHeader;
use crate::wire::address::Mac;
use crate::wire::checksum::{Change, updated, updated_udp};
use crate::wire::sctp::PortsMending;

/// A header, or a piece of one, as it stands in a frame: any bytes make one. Made of bytes and half words only,
/// because a frame starts at an even address and nothing more is known of its alignment.
pub trait Header: FromBytes + Immutable + KnownLayout + Copy {
    /// Fails to compile for a type that wants more alignment than a frame has.
    const FITS: () = assert!(align_of::<Self>() <= 2);
}

impl<T: FromBytes + Immutable + KnownLayout + Copy> Header for T {}

/// A piece of what is quoted.
pub type Piece = [u16; 8];
/// Its bytes.
pub const PIECE_BYTES: u32 = size_of::<Piece>() as u32;

/// The least bytes of a frame that the kernel takes a tag out of (`VLAN_ETH_HLEN`).
const TAGGED: usize = 18;

/// The frame ends inside the tag, or right behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

/// A frame's tag. Verifier: one number, and one that is never zero, so that no tag is a number too; of an `Option` with more in
/// it the compiler may store what nobody has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag(NonZeroU32);

impl Tag {
    const SERVICE: u32 = 2;

    /// A customer's tag (802.1Q) with this control information: priority (3 bits), drop eligible (1), VLAN id (12).
    #[inline(always)]
    pub fn customer(tci: u16) -> Self {
        Self(NonZeroU32::MIN | u32::from(tci) << 16)
    }

    /// A service tag (802.1ad).
    #[inline(always)]
    pub fn service(tci: u16) -> Self {
        Self(Self::customer(tci).0 | Self::SERVICE)
    }

    /// The tag that stands among a frame's own bytes.
    ///
    /// # Errors
    /// [`NoRoom`] where the kernel would not take it out.
    pub fn among(frame: &[u8]) -> Result<Option<Self>, NoRoom> {
        let tag = match frame.get(12..16) {
            Some(&[0x81, 0x00, high, low]) => Self::customer(u16::from_be_bytes([high, low])),
            Some(&[0x88, 0xa8, high, low]) => Self::service(u16::from_be_bytes([high, low])),
            _ => return Ok(None),
        };
        if frame.len() < TAGGED { Err(NoRoom) } else { Ok(Some(tag)) }
    }

    /// As it stands in a frame.
    pub fn bytes(self) -> [u8; 4] {
        let [high, low] = self.tci().to_be_bytes();
        if self.is_service() { [0x88, 0xa8, high, low] } else { [0x81, 0x00, high, low] }
    }

    /// Its control information.
    #[inline(always)]
    pub const fn tci(self) -> u16 {
        (self.0.get() >> 16) as u16
    }

    /// Whether it is a service tag.
    #[inline(always)]
    pub const fn is_service(self) -> bool {
        self.0.get() & Self::SERVICE != 0
    }
}

/// What a transport checksum has to make up for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mending {
    /// Offset of the checksum's field.
    pub field: u32,
    /// Whether zero means that there is none (UDP).
    pub optional: bool,
    /// Whether no header checksum makes up for the addresses (IPv6).
    pub alone: bool,
    /// What changed in the pseudo header: the addresses.
    pub addresses: Change,
    /// What changed in the transport header: the ports.
    pub ports: Change,
    /// What changed in the network header beside the addresses and its own checksum.
    pub header: Change,
}

impl Mending {
    /// What becomes of a checksum that is complete.
    pub fn mended(&self, checksum: u16) -> u16 {
        let update = if self.optional { updated_udp } else { updated };
        update(update(checksum, self.addresses), self.ports)
    }
}

/// A frame that can be looked at, from its Ethernet header on.
///
/// A packet of an interface without a link layer (tun, WireGuard, IP in IP) is bare: it looks like a frame whose Ethernet header
/// cannot be loaded. So offsets and lengths are the same for both.
pub trait Readable {
    /// The Ethernet header; none where the frame ends before it does. A bare packet's is made up, and has no addresses.
    #[inline(always)]
    fn ethernet(&self) -> Option<EthernetHeader> {
        self.load(0)
    }

    /// Whether the packet is bare.
    #[inline(always)]
    fn is_bare(&self) -> bool {
        false
    }

    /// Bytes of the frame, Ethernet header included; a GSO packet's all together.
    fn length(&self) -> u32;

    /// The tag in the metadata, if there is one. At tc ingress the outermost tag is always here, in a driver it never is.
    fn tag(&self) -> Option<Tag>;

    /// The header at `offset`; none where the frame, or the part of it that can be read directly, ends before it does.
    fn load<T: Header>(&self, offset: u32) -> Option<T>;
}

/// A frame that the kernel's stack has.
pub trait Packet: Readable + Sized {
    /// The payload bytes of each segment that a GSO packet will be cut into; 0 for any other.
    fn segment_size(&self) -> u32;

    /// The ifindex of the interface that the frame came into this node by; 0 if the node itself made it.
    fn origin(&self) -> u32;

    /// Makes the first `bytes` bytes readable directly, as far as the frame has them. False when that cannot be done.
    fn linearize(&mut self, bytes: u32) -> bool;

    /// Whether the link layer brought it to this host and to nobody else (`PACKET_HOST`).
    fn is_for_this_host(&self) -> bool;

    /// Edits the header at `offset`, which has been loaded before.
    fn edit<T: Header + IntoBytes>(&mut self, offset: u32, edit: impl FnOnce(&mut T));

    /// Gives the frame these Ethernet addresses: to whom, and from whom. A bare packet becomes a frame. False if the kernel has no
    /// memory for that. Everything loaded before may have moved.
    #[inline(always)]
    fn address(&mut self, destination: Mac, source: Mac) -> bool {
        self.edit(0, |ends: &mut [Mac; 2]| *ends = [destination, source]);
        true
    }

    /// Writes a header in the place of what has been loaded at `offset`, also where others hold the frame too, such as a capture: the
    /// kernel makes a copy then. False if it has no memory for one. Everything loaded before may have moved.
    fn store<T: Header + IntoBytes>(&mut self, offset: u32, header: &T) -> bool {
        self.edit(offset, |place: &mut T| *place = *header);
        true
    }

    /// Makes a transport checksum fit what has been edited. Everything loaded before may have moved.
    fn mend(&mut self, mending: Mending);

    /// Makes SCTP's checksum fit other ports.
    fn mend_ports(&mut self, mending: PortsMending) {
        mending.make_good(self);
    }

    /// The same number. Verifier: of which it knows nothing, so that what follows is walked once for all that it may be.
    #[inline(always)]
    fn forget(&self, number: u32) -> u32 {
        number
    }

    /// Leaves a number for the program's next function.
    fn leave_note(&mut self, number: u32);

    /// The number that was left.
    fn note(&self) -> u32;

    /// Makes the frame one that quotes it: its Ethernet header, room for others up to `above`, and behind these the first `pieces` of
    /// what was behind its Ethernet header; says what the quotation adds to a checksum. It was longer than that by `past` at least, and
    /// none of its headers began `past` bytes in, or further. None where the kernel cannot; then it is to be dropped, whatever it has
    /// become. Everything loaded before has moved.
    fn enclose(&mut self, above: u32, pieces: u32, past: u32) -> Option<Change>;

    /// Says what has changed in the frame that no checksum in it makes up for: the device may have summed it
    /// (`CHECKSUM_COMPLETE`).
    fn tell_sum(&mut self, change: Change);

    /// Takes the outermost tag off; the next one, if there is one, moves into the metadata (`skb_vlan_pop`). False if
    /// the kernel cannot.
    fn pop_tag(&mut self) -> bool;

    /// Puts a customer tag on a frame that has none. False if the kernel cannot.
    fn push_tag(&mut self, tci: u16) -> bool;

    /// Sends a copy of the frame, as it is now, out of an interface. False if there is no memory for it.
    fn copy_to(&mut self, ifindex: u32) -> bool;

    /// Has a copy of the frame, as it is now, come in by an interface once more. Everything loaded before may have moved.
    fn copy_in(&mut self, ifindex: u32);

    /// Makes the frame this host's own (`PACKET_HOST`). A bridged frame arrives as another host's, and before
    /// Linux 6.15 `bpf_redirect_peer` keeps that, whereupon the peer's `ip_rcv` drops it.
    fn become_own(&mut self);

    /// Marks the frame as judged, so that `to_container` lets it through without judging it again.
    fn mark_judged(&mut self);

    /// Takes that mark off. True when it was there.
    fn take_judged(&mut self) -> bool;

    /// Marks the frame as one that its restricted port's program has seen and leaves to the kernel (see [`crate::stages::guard`]).
    fn mark_checked(&mut self);

    /// Whether it has that mark.
    fn is_checked(&self) -> bool;

    /// Takes that mark off. True when it was there.
    fn take_checked(&mut self) -> bool;
}
