//! The shunt node agent: loads, pins and attaches the programs, and owns their maps.
//!
//! From the outside in: [`server`] serves the socket and hears netlink, [`Agent`] does what is asked of it, `requests` has each request and
//! `resources` all that an attachment needs, [`state`] remembers it on disk, [`datapath`] and `kernel` put it into the kernel.

#![forbid(unsafe_code)]

// The verbs of the command line name the library as another program would.
extern crate self as shunt_agent;

pub mod adoption;
mod agent;
pub mod bugreport;
pub mod capacity;
pub mod claims;
pub mod cli;
mod cluster;
pub mod config;
pub mod config_check;
pub mod datapath;
pub mod departed;
#[cfg(test)]
mod documented;
pub mod explain;
pub mod failpoints;
mod fdinfo;
pub mod install;
pub mod kernel;
#[cfg(feature = "kubernetes")]
pub mod kubernetes;
pub mod limits;
pub mod logging;
mod mac;
pub mod metrics;
pub mod nft;
mod owned;
pub mod panics;
pub mod privileges;
pub mod rcu;
pub mod registry;
mod requests;
mod resources;
pub mod server;
pub mod state;
mod ticks;
pub mod uninstall;
pub mod writable_sysctls;

pub use agent::{Agent, OpenError, PreviousState};
pub use resources::Refusal;
