//! `SHARES`: what a container has of the tables of translated connections.

use zerocopy::{Immutable, IntoBytes};

/// Value of `SHARES`, by counter slot. The agent writes `most` and `price`, and corrects `assured` after each sweep; the programs add to the
/// rest. All zeros limit nothing.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct Share {
    /// Entries of `ASSURED`. Below zero for a moment, where the agent has corrected it meanwhile.
    pub assured: i64,
    /// When all openings without an answer are paid for, by [`Side`], in nanoseconds of `CLOCK_BOOTTIME`.
    pub due: [u64; 4],
    /// As many entries of `ASSURED` it may have; 0 is no limit.
    pub most: u32,
    /// The time that an opening without an answer takes, in nanoseconds; 0 is no limit.
    pub price: u32,
}

impl Share {
    /// Whether it may have one more entry of `ASSURED`.
    #[inline(always)]
    pub const fn has_room(&self) -> bool {
        self.most == 0 || self.assured < self.most as i64
    }
}

/// Who has opened a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The container.
    Own = 0,
    /// A client of its host ports, by TCP.
    TcpClient = 1,
    /// A client of its host ports, by datagrams.
    DatagramClient = 2,
    /// The container, to a neighbour by others' rules (`ACCEPTED`).
    Neighbor = 3,
}

const _: () = assert!(size_of::<Share>() == 48);
