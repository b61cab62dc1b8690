//! `DECISIONS`, of the test build only.

use zerocopy::{Immutable, IntoBytes};

/// Value of the test build's `DECISIONS[0]`: the last packet's verdict.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct Decision {
    /// Of `Verdict::code`: 0 pass, 1 drop, 5 flooded, 8 dropped with an ICMP error to its sender, else a way of delivery.
    pub verdict: u32,
    /// The interface that it goes to; 0 for pass and drop, the number of copies where it was flooded.
    pub target: u32,
    /// `PassReason` or `DropReason`; 0 where the packet itself goes on.
    pub reason: u32,
    /// Whether the packet was made this host's own (`PACKET_HOST`) before it was redirected.
    pub unicast: u32,
    /// The tag that the packet left with, and `1 << 16`; 0 for none.
    pub tag: u32,
    /// A digest of the copies: for each the sum of interface and tag, times its place from 1 on, all added up.
    pub copies: u32,
    /// How many packets have been decided since the map was created: tells a new decision from an old one.
    pub serial: u64,
}

const _: () = {
    assert!(size_of::<Decision>() == 32);
};
