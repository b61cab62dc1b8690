//! shunt, the CNI plugin: puts containers on bridges whose traffic the agent's programs carry.
//!
//! One call is one process: [`run`] reads the environment and standard input, does the verb, and answers what is to be
//! printed. Nothing is kept between calls but what is in the kernel, with the agent and in the IPAM's files.

#![forbid(unsafe_code)]

mod about;
mod agent;
mod attach;
pub mod config;
mod entry;
mod error;
pub mod host_local;
mod inspect;
mod ipam;
mod json;
pub mod mac;
mod netns;
mod prefix;
pub mod protocol;
mod random;
pub mod result;
mod routes;
mod sysctl;
mod verbs;
mod vlan;

pub use about::ABOUT;
pub use entry::{Reply, run};
