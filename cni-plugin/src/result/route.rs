//! A route of a result, or of an IPAM configuration.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::lenient;

/// A route inside the container. All but `dst` and `gw` came with version 1.1.0 of the specification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Route {
    /// The destination.
    #[cfg_attr(test, schemars(with = "String"))]
    #[serde(deserialize_with = "shunt_netlink::prefix::deserialize")]
    pub dst: IpNet,
    /// The next hop; without it, the gateway of the family's first address.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient::address")]
    pub gw: Option<IpAddr>,
    /// Path MTU in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// The MSS to advertise, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advmss: Option<u32>,
    /// The metric; a lower one wins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// The routing table's number; without it, the main table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<u32>,
    /// The scope as the kernel numbers it: 0 universe, 253 link, 254 host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<u8>,
}

impl Route {
    /// A route with nothing but a destination and a next hop.
    pub fn via(dst: IpNet, gw: Option<IpAddr>) -> Self {
        Self { dst, gw, mtu: None, advmss: None, priority: None, table: None, scope: None }
    }
}
