//! The packet that a program runs on.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::wire::EthernetHeader;
use crate::wire::address::Mac;
use crate::wire::checksum::Change;
pub use crate::wire::checksum::ChecksumUpdate;
pub use crate::wire::tag::{NoRoom, Tag};

/// A header, or a piece of one, as it stands in a frame: any bytes are valid. Of bytes and half words only, since a frame starts at
/// an even address and no more is known of its alignment.
pub trait Header: FromBytes + Immutable + KnownLayout + Copy {
    /// Fails to compile for a type with more alignment than a frame has.
    const FITS: () = assert!(align_of::<Self>() <= 2);
}

impl<T: FromBytes + Immutable + KnownLayout + Copy> Header for T {}

/// A piece of an embedded packet.
pub type Piece = [u16; 8];
/// Its bytes.
pub const PIECE_BYTES: u32 = size_of::<Piece>() as u32;

/// A frame that can be read, from its Ethernet header on.
///
/// A packet of an interface without a link layer (tun, WireGuard, IP in IP) is bare: a frame whose Ethernet header cannot be
/// loaded, so that offsets and lengths are those of a frame.
pub trait Readable {
    /// The Ethernet header; none where the frame ends before it does. A bare packet's is synthetic, without addresses.
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

    /// The tag in the metadata, if any. At tc ingress the outermost tag is always there, in a driver never.
    fn tag(&self) -> Option<Tag>;

    /// The header at `offset`; none where the frame, or its directly readable part, ends before it does.
    fn load<T: Header>(&self, offset: u32) -> Option<T>;
}

/// A change of ports that an SCTP checksum covers, and where it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortsUpdate {
    /// Offset of the IP header.
    pub header: u32,
    /// Offset of the checksum.
    pub field: u32,
    /// The old ports and the new ones, XORed, the first byte lowest.
    pub ports: u32,
}

/// A frame in the kernel's stack.
pub trait Packet: Readable + Sized {
    /// Payload bytes of each segment of a GSO packet; 0 for other packets.
    fn segment_size(&self) -> u32;

    /// The ifindex of the interface by which the frame came into the node; 0 for the node's own.
    fn origin(&self) -> u32;

    /// Makes the first `bytes` bytes directly readable, as far as the frame has them. False if the kernel cannot.
    fn linearize(&mut self, bytes: u32) -> bool;

    /// Whether the link layer addressed it to this host alone (`PACKET_HOST`).
    fn is_for_this_host(&self) -> bool;

    /// Edits the header at `offset`, which has been loaded.
    fn edit<T: Header + IntoBytes>(&mut self, offset: u32, edit: impl FnOnce(&mut T));

    /// Writes the Ethernet addresses. A bare packet becomes a frame. False if the kernel has no memory for that. Invalidates everything
    /// loaded before.
    #[inline(always)]
    fn address(&mut self, destination: Mac, source: Mac) -> bool {
        self.edit(0, |ends: &mut [Mac; 2]| *ends = [destination, source]);
        true
    }

    /// Writes a header at `offset`, which has been loaded, also to a cloned frame (a capture has the clone): the kernel copies it first. False if
    /// it has no memory for that. Invalidates everything loaded before.
    fn store<T: Header + IntoBytes>(&mut self, offset: u32, header: &T) -> bool {
        self.edit(offset, |place: &mut T| *place = *header);
        true
    }

    /// Updates a transport checksum after edits. Invalidates everything loaded before.
    fn update_checksum(&mut self, update: ChecksumUpdate);

    /// Updates SCTP's checksum after a change of ports.
    fn update_sctp_checksum(&mut self, update: PortsUpdate) {
        update.apply(self);
    }

    /// The same number. Verifier: its value is unknown afterwards, so what follows is walked once for all values.
    #[inline(always)]
    fn forget(&self, number: u32) -> u32 {
        number
    }

    /// Stores a number for the program's next function.
    fn leave_note(&mut self, number: u32);

    /// The stored number.
    fn note(&self) -> u32;

    /// Turns the frame into one that embeds it: its Ethernet header, room for other headers up to `above`, and behind these the first
    /// `pieces` of its payload. Returns what the embedded packet adds to a checksum. The frame has to be longer than that by `past`, and
    /// none of its headers may begin at `past` or behind it. None where the kernel cannot: then the frame is to be dropped. Invalidates
    /// everything loaded before.
    fn embed(&mut self, above: u32, pieces: u32, past: u32) -> Option<Change>;

    /// Reports a change that no checksum in the frame cancels: the device may have summed the frame (`CHECKSUM_COMPLETE`).
    fn adjust_sum(&mut self, change: Change);

    /// Pops the outermost tag; the next one, if any, moves into the metadata (`skb_vlan_pop`). False if the kernel cannot.
    fn pop_tag(&mut self) -> bool;

    /// Pushes a customer tag on an untagged frame. False if the kernel cannot.
    fn push_tag(&mut self, tci: u16) -> bool;

    /// Sends a clone of the frame, as it is now, out of an interface. False if there is no memory for it.
    fn copy_to(&mut self, ifindex: u32) -> bool;

    /// Makes a clone of the frame, as it is now, come in by an interface again. Invalidates everything loaded before.
    fn copy_in(&mut self, ifindex: u32);

    /// Makes the frame this host's own (`PACKET_HOST`). A bridged frame is another host's; before Linux 6.15
    /// `bpf_redirect_peer` keeps that, and the peer's `ip_rcv` drops it.
    fn become_own(&mut self);

    /// Marks the frame as judged, so that `to_container` lets it pass.
    fn mark_judged(&mut self);

    /// Removes that mark. True if it was there.
    fn take_judged(&mut self) -> bool;

    /// Marks the frame as one that an uplink has brought into its bridge, for the bridge's own `from_wire`.
    fn mark_outside(&mut self);

    /// Whether it has that mark.
    fn is_outside(&self) -> bool;

    /// Removes that mark.
    fn unmark_outside(&mut self);

    /// Whether it has a mark of somebody else's.
    fn is_marked_by_others(&self) -> bool;

    /// Marks the frame as passed by its restricted port's program (see [`crate::stages::guard`]).
    fn mark_checked(&mut self);

    /// Whether it has that mark.
    fn is_checked(&self) -> bool;

    /// Removes that mark. True if it was there.
    fn take_checked(&mut self) -> bool;
}
