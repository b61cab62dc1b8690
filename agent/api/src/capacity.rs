//! `shunt-agent capacity` and the CNI verb CAPACITY; the field names are the contract of `--json`. Rates are bits a second.

use serde::{Deserialize, Serialize};

/// What can be handed out, what has been, and what is left.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapacityReport {
    /// The declared uplinks, by name.
    pub uplinks: Vec<UplinkReport>,
}

/// One uplink.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UplinkReport {
    /// The interface.
    pub name: String,
    /// What the link says of its speed; 0 if it says nothing that can be believed.
    pub speed: u64,
    /// What it sends.
    pub egress: PoolReport,
    /// What it receives.
    pub ingress: PoolReport,
    /// Attachments that the node has room for; the same for all uplinks.
    pub slots: SlotsReport,
    /// Who has been given how much, by key.
    pub allocations: Vec<Allocation>,
    /// Why it is not known what there is; absent where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// What the interface has carried; absent where it is not there, or cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<CarriedReport>,
}

/// Bytes of an interface since it was made, as the kernel counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedReport {
    /// What it has sent.
    pub egress: u64,
    /// What it has received.
    pub ingress: u64,
}

/// One direction of an uplink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolReport {
    /// What can be handed out: speed × factor − reserve.
    pub total: u64,
    /// What is kept for the node itself, and is in none of the other figures.
    pub reserved: u64,
    /// The sum of the allocations. Above the total only where admission did not hold them back, or the link has shrunk.
    pub allocated: u64,
    /// What is left of the total.
    pub free: u64,
}

/// Room for attachments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotsReport {
    /// What the node can serve; a bridge takes one too.
    pub total: u64,
    /// What is left of that.
    pub free: u64,
}

/// What an attachment has been given; 0 of a direction that it has no limit in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation {
    /// Network name.
    pub network: String,
    /// Container id.
    pub container: String,
    /// Interface name in the container.
    pub ifname: String,
    /// Of what the uplink sends.
    pub egress: u64,
    /// Of what the uplink receives.
    pub ingress: u64,
    /// Whether claims (dynamic resource allocation) limit it: then the scheduler counts it, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub claimed: bool,
}
