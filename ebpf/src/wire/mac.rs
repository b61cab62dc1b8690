//! Ethernet addresses.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// An Ethernet address. Kept in half words: the compiler for BPF keeps bytes one by one, and its stack is small.
#[repr(transparent)]
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
)]
pub struct Mac([u16; 3]);

impl Mac {
    /// The address with these bytes.
    #[inline(always)]
    pub const fn new([a, b, c, d, e, f]: [u8; 6]) -> Self {
        Self([u16::from_ne_bytes([a, b]), u16::from_ne_bytes([c, d]), u16::from_ne_bytes([e, f])])
    }

    /// Its bytes.
    #[inline(always)]
    pub const fn octets(self) -> [u8; 6] {
        let ([a, b], [c, d], [e, f]) =
            (self.0[0].to_ne_bytes(), self.0[1].to_ne_bytes(), self.0[2].to_ne_bytes());
        [a, b, c, d, e, f]
    }

    /// Its half words as they stand in memory.
    #[inline(always)]
    pub const fn halves(self) -> [u16; 3] {
        self.0
    }

    /// Whether it is one of the groups that bridges do not forward (`01:80:c2:00:00:00` to `:0f`).
    #[inline(always)]
    pub const fn is_reserved(self) -> bool {
        let [a, b, c, d, e, f] = self.octets();
        matches!([a, b, c, d, e], [0x01, 0x80, 0xc2, 0, 0]) && f < 16
    }

    /// Whether it names a group of stations (broadcast and multicast; IEEE 802 "individual/group" bit).
    #[inline(always)]
    pub const fn is_group(self) -> bool {
        self.0[0].to_ne_bytes()[0] & 1 == 1
    }

    /// Whether it names every station.
    #[inline(always)]
    pub const fn is_broadcast(self) -> bool {
        self.0[0] & self.0[1] & self.0[2] == 0xffff
    }

    /// Whether both are the same address. Spelled out: comparing arrays may call `memcmp`, which BPF lacks.
    #[inline(always)]
    pub const fn is(self, other: Self) -> bool {
        let ([a, b, c], [d, e, f]) = (self.0, other.0);
        (a ^ d) | (b ^ e) | (c ^ f) == 0
    }

    /// Whether a frame may come from it: neither a group nor all zeros, as the kernel's `is_valid_ether_addr`.
    #[inline(always)]
    pub const fn is_valid_source(self) -> bool {
        !self.is_group() && (self.0[0] | self.0[1] | self.0[2]) != 0
    }
}

/// The addresses of an Ethernet header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Macs {
    /// The destination.
    pub destination: Mac,
    /// The source.
    pub source: Mac,
}
