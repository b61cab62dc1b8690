//! What the containers carry, and those of their namespaces that are gone have carried: read at once, so that none is missing or counted twice.

use shunt_agent_api::{DropReport, PortReport};

use crate::departed::Departed;
use crate::resources::{Node, Refusal};

/// Counters of one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrafficReport {
    /// Of the containers that are attached.
    pub ports: Vec<PortReport>,
    /// What was dropped, by interface and reason.
    pub drops: Vec<DropReport>,
    /// Of those that are gone; empty where metrics are told by pod.
    pub departed: Departed,
}

impl Node {
    /// # Errors
    /// The counters cannot be read.
    pub(crate) fn traffic(&self) -> Result<TrafficReport, Refusal> {
        let departed = self.departed.as_ref().map(|kept| kept.carried.clone()).unwrap_or_default();
        Ok(TrafficReport { ports: self.ports()?, drops: self.drops()?, departed })
    }
}
