//! The built-in IPAM: host-local's configuration, lock, files and answers, in process.
//!
//! A network's state (crate `shunt_leases`) is one directory, `<dataDir>/<network>`, with a file per held address, named by it and holding who
//! holds it. host-local keeps exactly the same files under the same lock, so that either may allocate and release beside
//! the other at any time. Where the two differ on purpose: an ADD that fails gives back only what it took itself, DEL
//! needs no valid ranges, GC and STATUS are real, and an exhausted range says how many addresses it has.
//!
//! The network's name and the container id become parts of paths and records: they must have been validated before.

mod address;
mod allocate;
mod config;
mod error;
mod fault;
mod inspect;
mod json;
mod range;
mod range_set;
mod release;
mod request;
mod resolv_conf;
mod round_robin;
mod subnet;

use std::net::IpAddr;

use serde_json::Value;

use crate::result::{Dns, Route};

pub use allocate::add;
pub(crate) use config::data_dir;
pub use error::Error;
pub use fault::Fault;
pub use inspect::{check, one_address_per_family, status, validate};
pub use release::{del, gc};
pub use subnet::Subnet;

/// Whose addresses are asked for, and out of which ranges.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The network's name.
    pub network: &'a str,
    /// The container's id.
    pub container: &'a str,
    /// The interface's name inside the container.
    pub ifname: &'a str,
    /// The `ipam` object; a `null` counts as absent.
    pub config: &'a Value,
    /// The addresses that the runtime insists on, at most one in each range set.
    pub requested: Vec<IpAddr>,
    /// `runtimeConfig.ipRanges`: range sets that come before those of the configuration.
    pub ip_ranges: Option<&'a Value>,
}

/// What an attachment was given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Allocation {
    /// One address of each range set, in their order.
    pub ips: Vec<AllocatedIp>,
    /// The configuration's routes, unchanged.
    pub routes: Vec<Route>,
    /// What `resolvConf` says; empty without it.
    pub dns: Dns,
}

/// An address with its subnet's prefix length and gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocatedIp {
    /// The address.
    pub address: IpAddr,
    /// The prefix length of its subnet.
    pub prefix: u8,
    /// The subnet's gateway: the configured one, else its first address.
    pub gateway: Option<IpAddr>,
}
