//! `COUNTERS` and `DROPS`.

use zerocopy::{Immutable, IntoBytes};

/// Packets and bytes (Ethernet header included, a GSO packet counts once).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Value of `COUNTERS`, one per CPU: a port's traffic by direction and path.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct PortCounters {
    /// From the container, delivered by the fast path.
    pub from_fast: Count,
    /// From the container, left to the kernel.
    pub from_kernel: Count,
    /// From the container, dropped.
    pub from_dropped: Count,
    /// To the container, delivered by the fast path.
    pub to_fast: Count,
    /// To the container, by the kernel's way.
    pub to_kernel: Count,
    /// To the container, dropped.
    pub to_dropped: Count,
}

/// Key of `DROPS`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Immutable, IntoBytes)]
pub struct DropKey {
    /// The interface that the program ran on.
    pub ifindex: u32,
    /// `DropReason as u32`.
    pub reason: u32,
}

const _: () = {
    assert!(size_of::<Count>() == 16);
    assert!(size_of::<PortCounters>() == 96);
    assert!(size_of::<DropKey>() == 8);
};
