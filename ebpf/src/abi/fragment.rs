//! `FRAGMENTS`: see [`crate::nat::fragments`].

use zerocopy::{Immutable, IntoBytes};

use crate::wire::address::Address;

/// `FRAGMENTS`: datagrams of which a first fragment was translated. Written by the programs; least recently used go first.
pub const MAX_FRAGMENTS: u32 = 8_192;

/// Key of `FRAGMENTS`: what the fragments of one datagram have in common (RFC 791 section 3.2, RFC 8200 section 4.5), and their
/// origin.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Immutable, IntoBytes)]
pub struct FragmentKey {
    /// As [`super::translation::TupleKey::domain`].
    pub domain: u32,
    /// The datagram's identification, in network order: 16 bits for IPv4, and behind them zeros.
    pub identification: [u16; 2],
    /// The source.
    pub source: Address,
    /// The destination.
    pub destination: Address,
    /// IP protocol number.
    pub protocol: u8,
    /// Zero.
    pub pad: [u8; 3],
}

/// Value of `FRAGMENTS`: the first fragment's translation.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct FragmentTranslation {
    /// The source.
    pub source: Address,
    /// The destination.
    pub destination: Address,
    /// The domain that it goes to, as [`super::translation::TupleKey::domain`].
    pub domain: u32,
    /// Zero.
    pub pad: u32,
    /// When the first one came, in nanoseconds of `CLOCK_BOOTTIME`.
    pub seen: u64,
}

const _: () = {
    assert!(size_of::<FragmentKey>() == 44);
    assert!(size_of::<FragmentTranslation>() == 48);
};
