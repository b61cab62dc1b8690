//! The maps' layout: what the agent writes and the kernel programs read, byte for byte.
//!
//! Every type is `repr(C)` with its padding spelled out, holds neither `bool` nor `Option` nor an enum, and has its
//! size asserted, so that both sides agree and a map's bytes can be compared. A change here raises [`ABI_VERSION`],
//! which names the pin directory: old maps keep serving their old programs until the agent has moved what they hold.
//!
//! MAC and IP addresses and L4 ports are in network order; everything else is in the host's.

mod container_address;
mod counters;
mod decision;
mod flow;
pub mod fragment;
pub mod learning;
#[cfg(feature = "user")]
mod pod;
pub mod policer;
mod port;
mod station;
pub mod translation;
pub mod vlan;

pub use container_address::*;
pub use counters::*;
pub use decision::*;
pub use flow::*;
pub use port::*;
pub use station::*;

/// Names the pin directory (`<bpffs>/v1`).
pub const ABI_VERSION: u32 = 1;

/// `PORTS`: host veth ends by ifindex. Written by the agent; the programs write `asks` only. Gone with the link.
pub const MAX_PORTS: u32 = 16_384;

/// `FDB`: which station is behind which port. Written by the agent.
pub const MAX_STATIONS: u32 = 65_536;

/// `ADDRESSES`: the containers' own addresses. Written by the agent.
pub const MAX_ADDRESSES: u32 = 65_536;

/// `KERNEL_FLOWS`: flows that the kernel began. Written by both; least recently used go first.
pub const MAX_KERNEL_FLOWS: u32 = 131_072;

/// `COUNTERS`: one slot a port, plus [`NO_SLOT`].
pub const MAX_SLOTS: u32 = MAX_PORTS + 1;

/// `MAPPINGS`: the node's ports that lead to containers. Written by the agent.
pub const MAX_MAPPINGS: u32 = 16_384;

/// `LOCALS`: the node's own addresses. Written by the agent.
pub const MAX_LOCALS: u32 = 4_096;

/// `MASQUERADES`: the containers' addresses that are masqueraded. Written by the agent.
pub const MAX_MASQUERADES: u32 = 65_536;

/// `OUTLETS`: the interfaces by which masqueraded connections leave. Written by the agent.
pub const MAX_OUTLETS: u32 = 256;

/// `PEERS`: sockets of the node that were led to containers. Written by the programs; least recently used go first.
pub const MAX_PEERS: u32 = 32_768;

/// `FLOWS`: translated connections, two entries each, unless the agent makes it larger or smaller. Written by the programs, swept by the agent; least recently used
/// go first.
pub const MAX_FLOWS: u32 = 131_072;

/// `DROPS`: port × reason.
pub const MAX_DROPS: u32 = 16_384;

/// The counter slot of whoever has none of his own.
pub const NO_SLOT: u32 = 0;
