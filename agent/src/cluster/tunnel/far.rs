//! Pods that are reached through the VXLAN device.

use std::net::IpAddr;

use ipnet::IpNet;

/// Pods of a node beyond the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Far {
    /// One prefix of them.
    pub(crate) pods: IpNet,
    /// The address that packets to their node are encapsulated to.
    pub(crate) remote: IpAddr,
}
