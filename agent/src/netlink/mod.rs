//! What the agent asks of the kernel over netlink, and what it hears.
//!
//! Requests are blocking, one at a time, on the thread that owns the agent's state: an answer is some 10 µs away and a
//! port's attachment must not be interleaved with another's. Messages are read attribute by attribute, so that one
//! that this version has never heard of is skipped and not an error.

pub mod address;
pub(crate) mod attribute;
pub mod belongings;
pub mod bridge;
pub mod bystanders;
pub mod connected;
pub mod conntrack;
pub mod ethtool;
pub mod filter;
pub mod gateway;
pub mod link;
pub mod listener;
pub mod monitor;
mod quiet;
pub mod route;
pub mod sandbox;
pub mod selective;
pub mod shaper;
pub(crate) mod socket;
pub mod station;
pub(crate) mod traffic_control;
pub mod veth;

pub use socket::{NetlinkError, RequestSocket};
