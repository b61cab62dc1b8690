//! The layout of what the programs learn of stations beyond uplinks.

use zerocopy::{Immutable, IntoBytes};

use super::Station;

/// `LEARNED`: stations beyond uplinks. Written by the programs, aged by both.
pub const MAX_LEARNED: u32 = 16_384;

/// `UPLINKS`: bridges' uplinks. The agent makes and removes the entries, the programs count in them.
pub const MAX_UPLINKS: u32 = 256;

/// Stations that are learned from one uplink, so that a flood of addresses there takes no other uplink's room.
pub const MAX_HELD: u64 = 4_096;

/// How long a station that is not heard of stays known, in nanoseconds: as long as in the kernel's bridge.
pub const AGEING: u64 = 300_000_000_000;

/// How often at most it is written down that a station was heard, in nanoseconds.
pub const REFRESH: u64 = 1_000_000_000;

/// Value of `LEARNED`, under a [`super::StationKey`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct Learned {
    /// How it is reached.
    pub station: Station,
    /// When it was last heard, in nanoseconds of `CLOCK_BOOTTIME`.
    pub seen: u64,
    /// The VLAN that it was heard in then; 0 for none.
    pub vid: u16,
    /// Zero.
    pub pad: [u16; 3],
}

/// Value of `UPLINKS`, under the interface's [`super::PortKey`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct Learning {
    /// The largest payload that the uplink takes, in bytes without the Ethernet header.
    pub mtu: u32,
    /// Its counters: what goes to a station beyond it is counted there.
    pub slot: u32,
    /// How many stations are known there, as far as has been counted.
    pub held: u64,
    /// How many were not learned for want of room.
    pub refused: u64,
    /// How many times a station has moved here from another uplink.
    pub moved: u64,
}

const _: () = {
    assert!(size_of::<Learned>() == 32);
    assert!(size_of::<Learning>() == 32);
};
