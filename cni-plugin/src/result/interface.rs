//! Interfaces and addresses of a result.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use shunt_netlink::link::Link;

use super::lenient;
use crate::mac::Mac;

/// An interface that the attachment created or uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its hardware address.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mac: String,
    /// Its MTU in bytes (1.1.0).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// The namespace that it is in; empty on the node.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub sandbox: String,
    /// A vhost-user or similar socket (1.1.0); carried, never made here.
    #[serde(rename = "socketPath", skip_serializing_if = "String::is_empty")]
    pub socket_path: String,
    /// The device's PCI address (1.1.0); carried, never made here.
    #[serde(rename = "pciID", skip_serializing_if = "String::is_empty")]
    pub pci_id: String,
    /// Facts under namespaced names (`shunt.dev/…`); only where the configuration asks for `metadata`.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

impl Interface {
    /// A link on the node.
    pub(crate) fn on_node(link: &Link) -> Self {
        Self::inside(link, "")
    }

    /// A link in the container whose namespace is `sandbox`.
    pub(crate) fn inside(link: &Link, sandbox: &str) -> Self {
        Self {
            name: link.name.clone(),
            mac: link.mac.map(|mac| Mac::new(mac).to_string()).unwrap_or_default(),
            mtu: Some(link.mtu),
            sandbox: sandbox.to_owned(),
            ..Self::default()
        }
    }
}

/// An address of the container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ip {
    /// The index of its interface in the result's `interfaces`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<usize>,
    /// The address and its prefix.
    #[serde(deserialize_with = "shunt_netlink::prefix::deserialize")]
    pub address: IpNet,
    /// The subnet's gateway.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient::address")]
    pub gateway: Option<IpAddr>,
}
