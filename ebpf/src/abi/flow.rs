//! `KERNEL_FLOWS`: flows that stay with the kernel for life; `INCOMING_FLOWS`: those that no container began.

use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::wire::address::{Address, L4Port};

/// Key of `KERNEL_FLOWS`, `INCOMING_FLOWS` and `ACCEPTED`, and a record of `OPENED`. Both directions of a flow have the same key: the lower end comes first.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, FromBytes, Immutable, IntoBytes,
)]
pub struct FlowKey {
    /// The L2 domain, as [`Port::bridge`].
    pub bridge: u32,
    /// Lower end's port; 0 where the protocol has none. ICMP echo puts its identifier in both.
    pub low_port: L4Port,
    /// Higher end's port.
    pub high_port: L4Port,
    /// Lower end's address.
    pub low: Address,
    /// Higher end's address.
    pub high: Address,
    /// IP protocol number.
    pub protocol: u8,
    /// Zero.
    pub pad: [u8; 3],
}

/// Value of both, and of `CLAIMS` and `OWN_CLAIMS`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct KernelFlow {
    /// When it was recorded, in nanoseconds of `CLOCK_BOOTTIME`; of all but `KERNEL_FLOWS` when it was last seen,
    /// within a second.
    pub noticed: u64,
}

/// Value of `KERNEL_SHARES`, by counter slot: what a container has of `KERNEL_FLOWS`; in [`super::NO_SLOT`] what all have, and the limits.
/// The agent writes these, and corrects `flows` after each sweep; the programs add to the rest. All zeros limit nothing.
///
/// Least recently used go first from `KERNEL_FLOWS`: the limits see to it that none ever goes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct KernelShare {
    /// Flows that it pays for. Below zero for a moment, where the agent has corrected it meanwhile.
    pub flows: i64,
    /// Flows for which there was no room.
    pub refused: u64,
    /// So many containers may have together beyond `least`, and each half of it; 0 is no limit.
    pub most: u32,
    /// So many each may have whatever the others have.
    pub least: u32,
}

impl KernelShare {
    /// Whether there is room for another flow of a container, where `all` is of [`super::NO_SLOT`].
    #[inline(always)]
    pub const fn has_room(&self, all: &Self) -> bool {
        all.most == 0
            || self.flows < all.least as i64
            || (self.flows < (all.most / 2) as i64 && all.flows < all.most as i64)
    }
}

const _: () = {
    assert!(size_of::<FlowKey>() == 44);
    assert!(size_of::<KernelFlow>() == 8);
    assert!(size_of::<KernelShare>() == 24);
};

/// One end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Its address.
    pub address: Address,
    /// Its port; 0 where the protocol has none, an ICMP echo's identifier at both ends.
    pub port: L4Port,
}

impl End {
    #[inline(always)]
    const fn is_before(self, other: Self) -> bool {
        self.address.is_before(other.address)
            || (self.address.is(other.address) && self.port.number() < other.port.number())
    }
}

impl FlowKey {
    /// The key of the flow between `one` and `other` in an L2 domain.
    #[inline(always)]
    pub const fn of(bridge: u32, protocol: u8, one: End, other: End) -> Self {
        let (low, high) = if other.is_before(one) { (other, one) } else { (one, other) };
        Self {
            bridge,
            low_port: low.port,
            high_port: high.port,
            low: low.address,
            high: high.address,
            protocol,
            pad: [0; 3],
        }
    }
}
