//! CHECK: an attachment as the plugin believes it to be, as it is written down, and as it is in the kernel.

use shunt_agent_api::{Bandwidth, BridgePort};

use super::mappings::are_as_asked;
use super::{Agent, Refusal, admit};
use crate::kernel::Finding;
use crate::registry::Trunk;

impl Agent {
    /// Compares an attachment with the kernel.
    ///
    /// # Errors
    /// [`Refusal::Altered`] with everything that is missing or altered.
    pub fn check(&mut self, port: &BridgePort) -> Result<(), Refusal> {
        admit::port(port)?;
        let altered = |findings| Refusal::Altered { key: port.key.clone(), findings };
        let Some(attachment) = self.registry.get(&port.key).cloned() else {
            return Err(altered(vec!["it is not attached".to_owned()]));
        };
        // The result that the plugin compares with may have another MAC address, which a plugin after it has given to the
        // container's end. The container is a station behind its port then: slower, and right.
        let mut port = BridgePort { mac: attachment.port.mac.clone(), ..port.clone() };
        // Nor does it know of limits and host ports that a plugin after it has asked for.
        if port.bandwidth == Bandwidth::default() {
            port.bandwidth = attachment.port.bandwidth.clone();
        }
        if port.mappings.is_empty() || are_as_asked(&attachment.port.mappings, &port.mappings) {
            port.mappings.clone_from(&attachment.port.mappings);
        }
        let mut findings: Vec<_> = super::attach::difference(&attachment.port, &port)
            .map(|differs| format!("it is attached with another {differs}"))
            .into_iter()
            .collect();
        if !self.store.holds(&attachment.port) {
            findings.push(Finding::StateFile.to_string());
        }
        findings.extend(self.kernel.audit_port(&attachment)?.iter().map(Finding::to_string));
        findings.extend(self.kernel.audit_limits(&attachment)?);
        if let Some(bridge) = self.registry.bridge(attachment.port.bridge.index).cloned() {
            findings.extend(self.kernel.audit_bridge(&bridge)?.iter().map(Finding::to_string));
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
