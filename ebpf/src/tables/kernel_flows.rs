//! The maps of what is the kernel's, as the stages see them.

use crate::abi::translation::TupleKey;
use crate::abi::{FlowKey, KernelShare, PortKey, StationKey};

/// For whom the kernel has a connection outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claimant {
    /// The node itself.
    Own,
    /// Somebody whom it masquerades. These are not many, and nobody can be asked for them: the node's own do not push them out.
    Masqueraded,
}

/// What is the kernel's: flows between containers, what began outside, and connections outside.
pub trait KernelFlows {
    /// Whether a flow is the kernel's (`KERNEL_FLOWS`).
    fn is_kernel_flow(&self, key: &FlowKey) -> bool;

    /// Records that a flow is the kernel's.
    fn record_kernel_flow(&self, key: &FlowKey);

    /// What a container has of the kernel's flows (`KERNEL_SHARES`), by its counter slot, and what all have by [`crate::abi::NO_SLOT`].
    fn kernel_share(&self, slot: u32) -> Option<KernelShare>;

    /// Counts a recorded flow there.
    fn count_kernel_flow(&self, slot: u32);

    /// Counts one for which there was no room.
    fn refuse_kernel_flow(&self, slot: u32);

    /// Makes all flows of a container the kernel's: [`crate::abi::AFFINITY_APART`] of its port, [`crate::abi::STATION_APART`] of its station.
    fn put_apart(&self, port: &PortKey, station: &StationKey);

    /// When a datagram that the node has sent or routed to a container was last seen, of this flow, in nanoseconds of `CLOCK_BOOTTIME`
    /// (`INCOMING_FLOWS`).
    fn incoming_flow(&self, key: &FlowKey) -> Option<u64>;

    /// Records that one was seen at `now`.
    fn record_incoming_flow(&self, key: &FlowKey, now: u64);

    /// When the kernel was last seen to use the tuple whose answers have the tuple `key`, in nanoseconds of `CLOCK_BOOTTIME` (`CLAIMS`,
    /// `OWN_CLAIMS`).
    fn claimed(&self, by: Claimant, key: &TupleKey) -> Option<u64>;

    /// Records that it uses it at `now`.
    fn claim(&self, by: Claimant, key: &TupleKey, now: u64);

    /// Makes a port look up the flow of each packet from now on ([`crate::abi::AFFINITY_LOOKUP`]).
    fn require_flow_lookup(&self, key: &PortKey);
}
