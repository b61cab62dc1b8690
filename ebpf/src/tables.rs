//! Every question that a stage may ask of a map.

use crate::abi::policer::Policer;
use crate::abi::{AddressKey, DropKey, FlowKey, Owner, Port, PortKey, Station, StationKey};

/// Which of a port's counters ([`crate::abi::PortCounters`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// From the container, delivered by the fast path.
    FromFast,
    /// From the container, left to the kernel.
    FromKernel,
    /// From the container, dropped.
    FromDropped,
    /// To the container, delivered by the fast path.
    ToFast,
    /// To the container, by the kernel's way.
    ToKernel,
    /// To the container, dropped.
    ToDropped,
}

/// The maps, as the stages see them. Values are copies: what a stage decides rests on one state of each entry.
pub trait Tables {
    /// The interface that the program runs on.
    fn port(&self, key: &PortKey) -> Option<Port>;

    /// Where a station is.
    fn station(&self, key: &StationKey) -> Option<Station>;

    /// Which container has an address.
    fn owner(&self, key: &AddressKey) -> Option<Owner>;

    /// Whether a flow is the kernel's.
    fn is_kernel_flow(&self, key: &FlowKey) -> bool;

    /// Remembers that a flow is the kernel's.
    fn note_kernel_flow(&self, key: &FlowKey);

    /// Makes a port ask of each packet whether its flow is the kernel's, from now on.
    fn ask_from_now_on(&self, key: &PortKey);

    /// How what a port sends is limited, by its counter slot.
    fn policer(&self, slot: u32) -> Option<Policer>;

    /// Nanoseconds of `CLOCK_MONOTONIC`.
    fn now(&self) -> u64;

    /// Sets when all that a port sent is paid for.
    fn begin(&self, slot: u32, due: u64);

    /// Moves that by `nanoseconds`, whoever else does at the same time.
    fn charge(&self, slot: u32, nanoseconds: u64);

    /// Adds one packet of `bytes` bytes to a port's counter.
    fn count(&self, slot: u32, lane: Lane, bytes: u32);

    /// Adds one packet of `bytes` bytes to a drop reason's counter.
    fn count_drop(&self, key: &DropKey, bytes: u32);
}
