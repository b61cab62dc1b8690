//! `LEARNED` and `UPLINKS`: stations beyond uplinks.

use zerocopy::{Immutable, IntoBytes};

use super::Station;

/// `LEARNED`: stations beyond uplinks. Written by the programs, aged by both.
pub const MAX_LEARNED: u32 = 16_384;

/// `UPLINKS`: bridges' uplinks. The agent makes and removes the entries, the programs count in them.
pub const MAX_UPLINKS: u32 = 256;

/// Stations learned by one uplink at most, so that a flood of addresses there leaves room for others.
pub const MAX_HELD: u64 = 4_096;

/// The ageing time in nanoseconds: the kernel bridge's.
pub const AGEING: u64 = 300_000_000_000;

/// The least time between two updates of a station, in nanoseconds.
pub const REFRESH: u64 = 1_000_000_000;

/// Value of `LEARNED`, under a [`super::StationKey`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct Learned {
    /// Its station.
    pub station: Station,
    /// When it was last heard, in nanoseconds of `CLOCK_BOOTTIME`.
    pub seen: u64,
    /// The VLAN in which it was heard then; 0 for none.
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
    /// Its slot in `COUNTERS`, for what goes to stations beyond it.
    pub slot: u32,
    /// How many stations it has learned, by count.
    pub held: u64,
    /// How many were not learned because the table was full.
    pub refused: u64,
    /// How many stations have moved here from another uplink.
    pub moved: u64,
}

const _: () = {
    assert!(size_of::<Learned>() == 32);
    assert!(size_of::<Learning>() == 32);
};
