//! The nodes of a cluster, as far as this node's network is concerned.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// The nodes by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Members(pub(crate) BTreeMap<String, Member>);

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Member {
    /// The prefixes of its pods (`spec.podCIDRs`).
    pub(crate) pod_cidrs: Vec<IpNet>,
    /// When it came, in seconds since 1970 (`metadata.creationTimestamp`).
    #[serde(default)]
    pub(crate) created: i64,
    /// Its addresses (`status.addresses` of the type `InternalIP`).
    pub(crate) addresses: Vec<IpAddr>,
}

impl Member {
    /// Its first address of the same family.
    pub(crate) fn address(&self, is_v4: bool) -> Option<IpAddr> {
        self.addresses.iter().copied().find(|address| address.is_ipv4() == is_v4)
    }
}
