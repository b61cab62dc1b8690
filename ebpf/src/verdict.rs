//! How a packet's way ends.

use crate::abi::NO_SLOT;
pub use crate::reasons::{DropReason, PassReason};
use crate::wire::address::Address;

/// The end of a packet's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The fast path delivers it.
    Deliver(Delivery),
    /// No opinion: the kernel handles it as it would without the program (`TC_ACT_UNSPEC`).
    Pass(PassReason),
    /// It is dropped.
    Drop(DropReason),
    /// This many copies have gone to the members of its VLAN.
    Flooded(u32),
}

/// Where the fast path delivers a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The receiver's host veth end, or the interface that it leaves by.
    pub ifindex: u32,
    /// The receiver's counters.
    pub slot: u32,
    /// How it gets there.
    pub way: Way,
}

impl Delivery {
    /// On its way by the kernel from the interface `here`, with other ports.
    #[inline(always)]
    #[must_use]
    pub const fn onward(here: u32) -> Self {
        Self { ifindex: here, slot: NO_SLOT, way: Way::Onward }
    }
}

/// How a packet gets to its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Into the container (`bpf_redirect_peer`): from tc ingress only, while the peer is up.
    Peer,
    /// Out of the host end (`bpf_redirect`), through its tc egress.
    Port,
    /// Out of any interface, to the neighbour with this address (`bpf_redirect_neigh`), which the kernel resolves.
    Neighbor(Address),
    /// Out of a master, tagged.
    Wire,
    /// In by an interface (`BPF_F_INGRESS`), as if received there.
    Into,
    /// On its way by the kernel, with another port.
    Onward,
    /// Out of an interface, to the sender, as the ICMP error that it was too big: the packet itself was dropped.
    Back,
}

/// A stage ends the packet's way before delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// See [`Verdict::Pass`].
    Pass(PassReason),
    /// See [`Verdict::Drop`].
    Drop(DropReason),
}

impl From<Result<Delivery, Stop>> for Verdict {
    #[inline(always)]
    fn from(result: Result<Delivery, Stop>) -> Self {
        match result {
            Ok(delivery) => Self::Deliver(delivery),
            Err(stop) => stop.into(),
        }
    }
}

impl From<Stop> for Verdict {
    #[inline(always)]
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Pass(reason) => Self::Pass(reason),
            Stop::Drop(reason) => Self::Drop(reason),
        }
    }
}

impl Verdict {
    /// Whether the packet is left to the kernel.
    #[inline(always)]
    pub const fn is_passed(&self) -> bool {
        matches!(self, Self::Pass(_))
    }

    /// Whether the kernel goes on with the packet, as it is or with other ports.
    #[inline(always)]
    pub const fn is_onward(&self) -> bool {
        matches!(self, Self::Pass(_) | Self::Deliver(Delivery { way: Way::Onward, .. }))
    }

    /// Whether the packet is dropped.
    #[inline(always)]
    pub const fn is_dropped(&self) -> bool {
        matches!(self, Self::Drop(_))
    }

    /// The verdict as [`crate::abi::Decision`] has it: (verdict, target, reason).
    pub const fn code(self) -> (u32, u32, u32) {
        match self {
            Self::Pass(reason) => (0, 0, reason as u32),
            Self::Drop(reason) => (1, 0, reason as u32),
            Self::Flooded(copies) => (5, copies, 0),
            Self::Deliver(Delivery { ifindex, way: Way::Peer, .. }) => (2, ifindex, 0),
            Self::Deliver(Delivery { ifindex, way: Way::Port, .. }) => (3, ifindex, 0),
            Self::Deliver(Delivery { ifindex, way: Way::Neighbor(_), .. }) => (4, ifindex, 0),
            Self::Deliver(Delivery { ifindex, way: Way::Wire, .. }) => (6, ifindex, 0),
            Self::Deliver(Delivery { ifindex, way: Way::Into, .. }) => (7, ifindex, 0),
            Self::Deliver(Delivery { ifindex, way: Way::Onward, .. }) => (9, ifindex, 0),
            Self::Deliver(Delivery { ifindex, way: Way::Back, .. }) => {
                (8, ifindex, DropReason::TooBig as u32)
            }
        }
    }
}
