//! The shunt node agent: loads, pins and attaches the programs, and owns their maps.
//!
//! From the outside in: [`server`] serves the socket and hears netlink, [`Agent`] does what is asked of it, [`state`]
//! remembers it on disk, [`kernel`] puts it into the kernel by way of [`bpf`] and `shunt-netlink`.

#![forbid(unsafe_code)]

mod agent;
pub mod bpf;
pub mod capacity;
pub mod config;
pub mod explain;
mod external_filters;
pub mod failpoints;
pub mod flows;
pub mod host_port_counters;
pub mod kernel;
pub mod kubernetes;
pub mod learned;
mod mac;
pub mod metrics;
pub mod nft;
pub mod privileges;
pub mod rcu;
pub mod registry;
pub mod server;
pub mod shape;
pub mod state;
pub mod subnets;
pub mod upgrade;
pub mod uplink;
pub mod vlan_gateway;

pub use agent::{Agent, OpenError, PreviousState, Refusal};
