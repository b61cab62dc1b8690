//! `POLICERS` and `SUBNETS`: the rates of ports.

use zerocopy::{Immutable, IntoBytes};

use crate::wire::address::Address;

/// Value of `POLICERS`: a port's rate, by its counter slot. Written by the agent; the programs write `due` only. Read for ports with
/// [`super::PORT_POLICED`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct Policer {
    /// When all that was sent so far is paid for, in nanoseconds of `CLOCK_MONOTONIC`.
    pub due: u64,
    /// The time that [`PRICED`] bytes take at the rate, in nanoseconds.
    pub price: u64,
    /// How far `due` may be ahead of a packet's arrival, in nanoseconds.
    pub tolerance: u64,
}

/// The bytes of [`Policer::price`]: enough for a price in whole nanoseconds to be exact at any rate.
pub const PRICED: u64 = 1 << 14;

/// The kinds of flooded frames that a port's rate is for ([`super::PORT_STORM`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storm {
    /// To all stations.
    Broadcast = 1,
    /// To any other group.
    Multicast = 2,
}

/// `POLICERS` holds three of each slot: the limit by bytes, and behind all of those the two by packets, whose
/// [`Policer::price`] is one packet's; 0 is no limit.
pub const MAX_POLICERS: u32 = 3 * super::MAX_SLOTS;

/// The slot in `POLICERS` of a port's rate of flooded frames.
#[inline(always)]
pub const fn storm_slot(slot: u32, storm: Storm) -> u32 {
    slot + storm as u32 * super::MAX_SLOTS
}

/// Data of a key of `SUBNETS`, a trie in which the longest prefix counts: where a port with [`super::PORT_SUBNETS`] sends
/// to. Written by the agent. The value is 1 where that is limited, and 0 where it is not.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Immutable, IntoBytes)]
pub struct SubnetKey {
    /// The port's counter slot.
    pub slot: u32,
    /// The destination; unspecified where it is not IP.
    pub address: Address,
}

/// Bits of the slot alone: everything outside the port's subnets.
pub const SLOT_BITS: u32 = 32;
/// Bits of the slot and a whole address.
pub const SUBNET_BITS: u32 = SLOT_BITS + 128;

/// Subnets of all ports together.
pub const MAX_SUBNETS: u32 = 1 << 16;

const _: () = {
    assert!(size_of::<Policer>() == 24);
    assert!(size_of::<SubnetKey>() == 20);
};
