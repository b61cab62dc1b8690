//! What is asked of the built-in IPAM, and what it gives.

use std::net::IpAddr;

use serde_json::Value;

use crate::result::{Dns, Route};

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
