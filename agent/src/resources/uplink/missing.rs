//! Uplinks that are configured and not there.

use shunt_agent_api::BridgePort;

use super::observed::fault_name;
use super::validation::names;
use crate::resources::reconcile::{Cause, Resource};
use crate::resources::{Finding, Node, Refusal};

/// An uplink that a port names and that does not serve.
pub(crate) struct MissingUplink {
    name: String,
    port: BridgePort,
}

impl MissingUplink {
    /// Every one, each once.
    pub(crate) fn all(node: &Node) -> Vec<Self> {
        let mut missing: Vec<Self> = Vec::new();
        if !node.registry.has_uplinked() {
            return missing;
        }
        for port in node.registry.attachments().map(|attachment| &attachment.port) {
            let Some(wanted) = &port.service.uplink else { continue };
            let serves = node.registry.uplinks.values().any(|uplink| uplink.link.name == wanted.name);
            if !serves && !missing.iter().any(|other| names(&other.port, &wanted.name)) {
                missing.push(Self { name: wanted.name.clone(), port: port.clone() });
            }
        }
        missing
    }
}

impl Resource for MissingUplink {
    fn name(&self) -> String {
        fault_name(&self.name)
    }

    fn ifname(&self) -> &str {
        &self.name
    }

    fn observe(&self, node: &mut Node) -> Result<Vec<Finding>, Refusal> {
        match node.uplink_of(&self.port) {
            Some(uplink) => uplink.observe(node),
            None => Ok(vec![Finding::Link(self.name.clone())]),
        }
    }

    fn apply(&self, node: &mut Node, cause: Cause<'_>) -> Result<(), Refusal> {
        // The next look says what is missing.
        if matches!(cause, Cause::Start(_)) {
            return Ok(());
        }
        let mut port = self.port.clone();
        node.validate_uplink(&mut port)?;
        node.build_uplink(&port)
    }

    fn is_beyond_repair(&self, _: &mut Node, _: &[Finding]) -> bool {
        false
    }
}
