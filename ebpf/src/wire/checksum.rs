//! The Internet checksum (RFC 1071) after a change of what it covers, without the rest of the packet (RFC 1624).
//!
//! All values are half words as they stand in the packet: a one's complement sum is the same in either byte order.
//!
//! The function depends on who computes the checksum. An IPv4 header's, and a complete TCP or ICMPv6 one: [`updated`]. A
//! complete UDP one: [`updated_udp`]. In packets of this machine the device mostly completes the transport checksum
//! (`CHECKSUM_PARTIAL`): the field holds the pseudo header's sum, so an address changes it ([`updated_partial`]) and a port
//! does not. A program cannot see which one it has; the kernel can: `bpf_l4_csum_replace` takes the addresses' change with
//! `BPF_F_PSEUDO_HDR` and the ports' change without it, and updates `skb->csum` where the device has summed the packet
//! (`CHECKSUM_COMPLETE`), for which IPv6 needs `BPF_F_IPV6`, as no header checksum cancels the address there.

use crate::wire::address::{Address, L4Port};

/// The difference of a one's complement sum: for each changed field the complement of the old value and the new value.
///
/// Not folded: 2³² is 1 modulo 2¹⁶ − 1, so words may be added as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change(u64);

impl Change {
    /// Nothing changes.
    pub const NONE: Self = Self(0);

    /// And an address. An IPv4 one counts as what it is: the words of the mapping's prefix cancel out.
    #[inline(always)]
    #[must_use]
    pub const fn address(self, old: Address, new: Address) -> Self {
        let ([a, b, c, d], [e, f, g, h]) = (old.words(), new.words());
        self.word(a, e).word(b, f).word(c, g).word(d, h)
    }

    /// A sum of 32 bits, as the kernel's helpers return it.
    #[inline(always)]
    pub const fn sum(sum: u32) -> Self {
        Self(sum as u64)
    }

    /// And a port.
    #[inline(always)]
    #[must_use]
    pub const fn port(self, old: L4Port, new: L4Port) -> Self {
        self.half(old.half(), new.half())
    }

    /// And a half word at an even offset.
    #[inline(always)]
    #[must_use]
    pub const fn half(self, old: u16, new: u16) -> Self {
        Self(self.0 + !old as u64 + new as u64)
    }

    /// And new half words.
    #[inline(always)]
    #[must_use]
    pub fn halves<const N: usize>(self, new: [u16; N]) -> Self {
        new.into_iter().fold(self, |sum, half| sum.half(0, half))
    }

    #[inline(always)]
    const fn word(self, old: u32, new: u32) -> Self {
        Self(self.0 + !old as u64 + new as u64)
    }

    /// And all of another change.
    #[inline(always)]
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }

    /// The sum in 32 bits, as the kernel's checksum helpers take a difference (`from` 0, size 0).
    #[inline(always)]
    pub const fn difference(self) -> u32 {
        let once = (self.0 & 0xffff_ffff) + (self.0 >> 32);
        ((once & 0xffff_ffff) + (once >> 32)) as u32
    }

    #[inline(always)]
    const fn onto(self, sum: u16) -> u16 {
        let once = self.difference() as u64 + sum as u64;
        let twice = (once & 0xffff) + (once >> 16);
        let thrice = (twice & 0xffff) + (twice >> 16);
        ((thrice & 0xffff) + (thrice >> 16)) as u16
    }
}

/// The checksum of everything that has been added.
#[inline(always)]
pub const fn whole(added: Change) -> u16 {
    updated(!0, added)
}

/// A complete checksum after a change (RFC 1624, equation 3).
#[inline(always)]
pub const fn updated(checksum: u16, change: Change) -> u16 {
    !change.onto(!checksum)
}

/// A complete UDP checksum after a change. Zero says that there is none and stays; one that would come out as zero is
/// sent as all ones (RFC 768).
#[inline(always)]
pub const fn updated_udp(checksum: u16, change: Change) -> u16 {
    if checksum == 0 {
        return 0;
    }
    match updated(checksum, change) {
        0 => 0xffff,
        other => other,
    }
}

/// A checksum field that holds the pseudo header's sum only, after a change of `addresses`.
#[inline(always)]
pub const fn updated_partial(sum: u16, addresses: Change) -> u16 {
    addresses.onto(sum)
}

/// The update of a transport checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChecksumUpdate {
    /// Offset of the checksum.
    pub field: u32,
    /// Whether zero means no checksum (UDP).
    pub optional: bool,
    /// Whether no header checksum cancels the addresses' change (IPv6).
    pub alone: bool,
    /// The change of the pseudo header: the addresses.
    pub addresses: Change,
    /// The change of the transport header: the ports.
    pub ports: Change,
    /// The change of the network header, except its addresses and its own checksum.
    pub header: Change,
}

impl ChecksumUpdate {
    /// A complete checksum after the update.
    pub fn updated(&self, checksum: u16) -> u16 {
        let update = if self.optional { updated_udp } else { updated };
        update(update(checksum, self.addresses), self.ports)
    }
}
