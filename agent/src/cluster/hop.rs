//! A prefix of another node's pods, and where that node is.

use std::net::IpAddr;

use ipnet::IpNet;

/// What is known of the way to some pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hop {
    /// The pods.
    pub(crate) pods: IpNet,
    /// Their node's address of the same family.
    pub(crate) node: Option<IpAddr>,
    /// The address that packets to the node are encapsulated to: its first one, if that is of the family of this node's first one.
    pub(crate) tunnel: Option<IpAddr>,
}
