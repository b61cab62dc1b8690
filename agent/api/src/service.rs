//! How a port serves: what its maker gave the port and its bridge, so that it can be given again if somebody takes it.

use serde::{Deserialize, Serialize};

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
