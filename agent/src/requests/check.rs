//! CHECK: compares the plugin's view of an attachment with the state file and the kernel.

use shunt_agent_api::{Bandwidth, BridgePort};

use super::map::are_as_asked;
use crate::registry::{Attachment, Trunk};
use crate::resources::Finding;
use crate::resources::port::difference;
use crate::resources::validation;
use crate::resources::{Node, Refusal};

impl Node {
    /// Compares an attachment with the kernel.
    ///
    /// # Errors
    /// [`Refusal::Altered`] with everything that is missing or altered.
    pub(crate) fn check(&mut self, port: &BridgePort) -> Result<(), Refusal> {
        validation::port(port)?;
        let altered = |findings| Refusal::Altered { key: port.key.clone(), findings };
        let Some(attachment) = self.registry.get(&port.key).cloned() else {
            return Err(altered(vec!["it is not attached".to_owned()]));
        };
        let port = as_seen(&attachment, port);
        let mut findings: Vec<_> = difference(&attachment.port, &port)
            .map(|differs| format!("it is attached with another {differs}"))
            .into_iter()
            .collect();
        if !self.store.holds(&attachment.port) {
            findings.push(Finding::StateFile.to_string());
        }
        findings.extend(self.audit_port(&attachment)?.iter().map(Finding::to_string));
        findings.extend(self.audit_limits(&attachment)?);
        if let Some(bridge) = self.registry.bridge(attachment.port.bridge.index).cloned() {
            findings.extend(self.audit_bridge_alone(&bridge)?.iter().map(Finding::to_string));
        }
        if let Some(trunk) = Trunk::of(&attachment.port) {
            findings.extend(self.audit_trunk(&trunk)?.iter().map(Finding::to_string));
        }
        if let Some(uplink) = self.uplink_of(&attachment.port) {
            findings.extend(self.audit_uplink(&uplink)?.iter().map(Finding::to_string));
        }
        findings.extend(self.audit_gateway_of(&attachment.port)?.iter().map(Finding::to_string));
        if findings.is_empty() { Ok(()) } else { Err(altered(findings)) }
    }
}

/// The limits that were asked for, whatever claims have made of them.
pub(super) fn asked_of(port: &BridgePort) -> &Bandwidth {
    let claimed = port.pod.as_ref().and_then(|pod| pod.claimed.as_ref());
    claimed.map_or(&port.bandwidth, |claimed| &claimed.asked)
}

/// A port as its first plugin cannot but see it, completed by what later plugins of the chain have made of it.
pub(super) fn as_seen(attachment: &Attachment, port: &BridgePort) -> BridgePort {
    // One may have changed the container's MAC address. The container is then a learned station: correct, but slower.
    let mut port = BridgePort { mac: attachment.port.mac.clone(), ..port.clone() };
    // Their limits and host ports are not in the result, either; and what claims have made of limits, no plugin sees.
    if port.bandwidth == Bandwidth::default() || port.bandwidth == *asked_of(&attachment.port) {
        port.bandwidth = attachment.port.bandwidth.clone();
        port.pod.clone_from(&attachment.port.pod);
    }
    if port.mappings.is_empty() || are_as_asked(&attachment.port.mappings, &port.mappings) {
        port.mappings.clone_from(&attachment.port.mappings);
    }
    // A cluster's nodes come and go: the agent's list is newer than that of any configuration.
    port.unmasqueraded.clone_from(&attachment.port.unmasqueraded);
    port
}
