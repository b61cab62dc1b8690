//! The layout of the maps that agent and programs share.
//!
//! Every type is `repr(C)` with explicit padding and an asserted size, and holds neither `bool` nor `Option` nor an enum, so that both
//! sides agree and bytes can be compared. A change raises [`ABI_VERSION`], which names the pin directory: old programs keep their
//! old maps until the agent has migrated the entries.
//!
//! MAC and IP addresses and L4 ports are in network order; everything else is in the host's.

mod accepted;
mod alias;
mod connection;
mod container_address;
mod counters;
mod decision;
mod flow;
pub mod fragment;
pub mod learning;
mod marks;
mod mention;
#[cfg(feature = "user")]
mod pod;
pub mod policer;
mod port;
mod reverse_path;
pub mod share;
mod station;
pub mod translation;
pub mod vlan;
pub mod watch;

pub use accepted::*;
pub use alias::*;
pub use container_address::*;
pub use counters::*;
pub use decision::*;
pub use flow::*;
pub use marks::*;
pub use mention::*;
pub use port::*;
pub use reverse_path::*;
pub use station::*;

/// Names the pin directory (`<bpffs>/v2`).
pub const ABI_VERSION: u32 = 2;

/// `PORTS`: host veth ends by ifindex. Written by the agent; the programs write `affinity` only. Gone with the link.
pub const MAX_PORTS: u32 = 16_384;

/// `FDB`: the station behind each port. Written by the agent.
pub const MAX_STATIONS: u32 = 65_536;

/// `ADDRESSES`: the containers' own addresses. Written by the agent.
pub const MAX_ADDRESSES: u32 = 65_536;

/// `LINK_LOCALS`: link-local addresses that containers on checked ports have chosen. Written by the programs; the agent removes those
/// of former ports.
pub const MAX_LINK_LOCALS: u32 = MAX_PORTS;

/// `KERNEL_FLOWS`: flows that the kernel began. Written by both; least recently used go first, but `KERNEL_SHARES` keeps it from being full.
pub const MAX_KERNEL_FLOWS: u32 = 131_072;
/// `ACCEPTED`: flows that others' rules have let through. Written by the programs; least recently used go first, and are asked for again.
pub const MAX_ACCEPTED: u32 = 65_536;
/// `INCOMING_FLOWS`: datagrams' flows that began outside. Written by the programs; least recently used go first.
pub const MAX_INCOMING_FLOWS: u32 = 65_536;
/// `CLAIMS` and `OWN_CLAIMS`: connections outside of the node that are the kernel's. Written by both; least recently used go first.
pub const MAX_CLAIMS: u32 = 65_536;

/// `COUNTERS`: one slot a port, plus [`NO_SLOT`].
pub const MAX_SLOTS: u32 = MAX_PORTS + 1;

/// `MAPPINGS`: the node's ports that lead to containers. Written by the agent. Room for every port of TCP and UDP, of both families; made
/// as they come.
pub const MAX_MAPPINGS: u32 = 262_144;

/// `LOCALS`: prefixes of the node's own addresses. Written by the agent.
pub const MAX_LOCALS: u32 = 4_096;

/// `MASQUERADES`: the containers' addresses that are masqueraded. Written by the agent.
pub const MAX_MASQUERADES: u32 = 65_536;

/// `OUTLETS`: the addresses by which masqueraded connections leave. Written by the agent.
pub const MAX_OUTLETS: u32 = 4_096;
/// `SOURCES`: which of them. Written by the agent.
pub const MAX_SOURCES: u32 = 4 * MAX_OUTLETS;

/// `CONNECTED_PEERS` and `PEERS`: sockets of the node that were redirected to containers, connected UDP sockets and the others. Written by the
/// programs; the agent sweeps the first, and of the second the least recently used go first.
pub const MAX_PEERS: u32 = 32_768;

/// `ALIASES`: ports of containers for one socket of the node only. Written by the programs; least recently used go first.
pub const MAX_ALIASES: u32 = 1_024;

/// `ASSURED` and `FLOWS`: translated connections, two entries each, unless the agent makes them larger or smaller. Written by the programs,
/// swept by the agent; of `FLOWS` the least recently used go first.
pub const MAX_FLOWS: u32 = 131_072;

/// `DROPS`: port × reason.
pub const MAX_DROPS: u32 = 16_384;

/// The counter slot of interfaces without one of their own.
pub const NO_SLOT: u32 = 0;
