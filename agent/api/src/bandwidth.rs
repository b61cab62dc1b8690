//! What a container may send and receive in a second.

use serde::{Deserialize, Serialize};

/// The limits of an attachment, named from the container's point of view as the reference bandwidth plugin's keys are.
/// The default is an unlimited one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bandwidth {
    /// Towards the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress: Option<Rate>,
    /// From the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub egress: Option<Rate>,
    /// Prefixes, as `10.1.0.0/16`: only traffic to and from them is limited; all if there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shaped: Vec<String>,
    /// Prefixes whose traffic is not limited.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unshaped: Vec<String>,
}

/// One direction's limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// Bits a second.
    pub rate: u64,
    /// Bits that may pass at once after a pause.
    pub burst: u64,
}
