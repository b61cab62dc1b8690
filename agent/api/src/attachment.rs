//! What the plugin hands to the agent: one container interface and the bridge that it is a port of.

use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{AttachmentKey, Bandwidth, Pod, PortMapping, Restrictions, Service, VlanInterface};

/// A link in the agent's own network namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its ifindex. The kernel reuses these values: a name and an index that no longer match mean another link.
    pub index: u32,
}

/// A container's interface as a port of a bridge, or as a VLAN's on a master.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BridgePort {
    /// Whose port it is.
    pub key: AttachmentKey,
    /// The kernel bridge under it; for a VLAN's interface its master, or its parent's host end.
    pub bridge: Interface,
    /// The veth end that stays in the node's namespace; its peer is `key.ifname` in the container.
    pub host: Interface,
    /// The container end's MAC address, as `aa:bb:cc:dd:ee:ff`.
    pub mac: String,
    /// The container's addresses on this interface; may be empty (a layer 2 network).
    pub ips: Vec<IpAddr>,
    /// MTU of both ends, in bytes, without the Ethernet header.
    pub mtu: u32,
    /// The container's namespace as the runtime named it; only reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netns: Option<String>,
    /// Whether the container's end is up already. `bpf_redirect_peer` loses packets silently while it is not.
    #[serde(default)]
    pub peer_up: bool,
    /// Prefixes, as `10.1.0.0/16`, whose traffic to anywhere else gets the node's address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub masquerade: Vec<String>,
    /// Prefixes, as `10.2.0.0/16`, that see the container's own address nevertheless. An agent that does not know the field masquerades
    /// what goes there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmasqueraded: Vec<String>,
    /// What it may do less than an open port.
    #[serde(default, skip_serializing_if = "is_default")]
    pub restrictions: Restrictions,
    /// The node's ports that lead to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mappings: Vec<PortMapping>,
    /// Its limits.
    #[serde(default, skip_serializing_if = "is_default")]
    pub bandwidth: Bandwidth,
    /// What the kernel bridge was told for it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub service: Service,
    /// Where its addresses are leased: the `dataDir` of an IPAM that keeps host-local's files. Absolute, with no link in it.
    /// None where no such IPAM gave them, or it is not known which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_dir: Option<PathBuf>,
    /// The VLAN whose interface it is; none for a port of a bridge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<VlanInterface>,
    /// The pod that it belongs to, as far as the runtime says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<Pod>,
}

impl BridgePort {
    /// Whether it has restrictions; then its programs fail closed, with a bridge or without.
    pub fn is_restricted(&self) -> bool {
        self.restrictions != Restrictions::default()
    }

    /// Whether what it sends to other ports has a way through the kernel's bridge. Ports in VLANs and VLAN interfaces have none.
    pub fn is_bridged(&self) -> bool {
        self.vlan.is_none() && self.restrictions.vlans.is_none()
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
