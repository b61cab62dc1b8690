//! One prepared claim.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::capacity::Demand;

/// A claim as it was allocated and reserved when it was prepared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Its UID.
    pub uid: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The pod that it is reserved for.
    pub pod: Consumer,
    /// What it has of the node's uplinks.
    pub shares: Vec<Share>,
}

/// A pod of the claim's namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consumer {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
}

/// A device of a claim: some of an uplink's bandwidth (`status.allocation.devices.results[]`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// The claim's request.
    pub request: String,
    /// The pool of the `ResourceSlice`.
    pub pool: String,
    /// The device's name there.
    pub device: String,
    /// The uplink that the device is, by its interface's name; found at the preparation.
    #[serde(default)]
    pub uplink: String,
    /// Which of the device's allocations it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_id: Option<String>,
    /// `consumedCapacity.egressBandwidth`, bits a second.
    pub egress: u64,
    /// `consumedCapacity.ingressBandwidth`, bits a second.
    pub ingress: u64,
}

impl Claim {
    /// What it has of an uplink; none if it has nothing of it.
    pub fn of_uplink(&self, uplink: &str) -> Option<Demand> {
        let shares = self.shares.iter().filter(|share| share.uplink == uplink);
        shares.fold(None, |sum: Option<Demand>, share| {
            let Demand { egress, ingress } = sum.unwrap_or_default();
            Some(Demand {
                egress: egress.saturating_add(share.egress),
                ingress: ingress.saturating_add(share.ingress),
            })
        })
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
