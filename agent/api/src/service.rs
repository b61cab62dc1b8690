//! How a port serves: what its maker gave the port and its bridge, so that it can be given again if somebody takes it.

use serde::{Deserialize, Serialize};

use crate::BigTcp;

/// The alias of a bridge that the plugin made.
pub const BRIDGE_MARK: &str = "shunt";

/// What the kernel bridge was told for a port. The default is a port that was told nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Service {
    /// The bridge sends back out of the port what came by it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hairpin: bool,
    /// The bridge's own addresses as the gateway of the port's subnets, each as `10.1.0.1/16`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gateways: Vec<String>,
    /// The interface by which the bridge leads out of the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uplink: Option<BridgeUplink>,
    /// The gateway of the port's untagged VLAN; a port without VLANs has the bridge itself as its gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vlan_gateway: Option<VlanGateway>,
    /// Whether others' rules are asked for flows of its bridge, whatever the agent's file says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filters: Option<FilterMode>,
    /// How large the packets of its veth are, whatever the agent's file says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub big_tcp: Option<BigTcp>,
}

/// Whether others' rules for bridged packets are asked for flows between containers (`filters`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FilterMode {
    /// Where somebody has any that may refuse or change something.
    Auto,
    /// Always.
    Heed,
    /// Never.
    Bypass,
}

/// The node's interface in the VLAN of a port's untagged frames. Its name is [`crate::interface_name`] of the bridge and the VLAN.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VlanGateway {
    /// Its addresses as the gateway of the port's subnets, each as `10.1.0.1/16`.
    pub addresses: Vec<String>,
    /// Whether an address in their way is removed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub force_address: bool,
    /// Its MAC address, as `aa:bb:cc:dd:ee:ff`, the same for as long as it is needed. The agent's own note.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mac: String,
}

/// An interface of the node that becomes a trunk port of a bridge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BridgeUplink {
    /// Its name.
    pub name: String,
    /// Whether its addresses and routes move to the bridge.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub move_address: bool,
    /// Whether it was a port of the bridge before the agent was asked, and is to stay one. The agent's own note.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
}
