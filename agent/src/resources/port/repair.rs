//! Repairs ports.

use shunt_agent_api::AttachmentKey;

use crate::resources::{Finding, Node};

impl Node {
    /// Checks and repairs an attachment.
    pub(crate) fn repair_attachment(&mut self, key: &AttachmentKey) {
        let Some(attachment) = self.registry.get(key).cloned() else { return };
        let name = key.to_string();
        let findings = self.audit(&attachment);
        // A deleted link has its own event, which removes the attachment.
        if self.repairs.is_off() || matches!(findings.as_deref(), Ok([Finding::Link(_)])) {
            return;
        }
        let bridge = attachment.port.bridge.index;
        if findings.iter().flatten().any(|finding| matches!(finding, Finding::Master { .. }))
            && self.kernel.link(bridge).is_ok_and(|link| link.is_none())
        {
            // The ports' events come before the bridge's.
            if let Err(error) = self.gone(bridge) {
                tracing::warn!(%error, "cannot handle the deletion of a bridge");
            }
            return;
        }
        let ifname = attachment.port.host.name.clone();
        let repair = |node: &mut Self, findings: &[Finding]| {
            node.apply_repairs(&attachment, findings)?;
            node.audit(&attachment)
        };
        self.repair_findings(&name, Some(key), &ifname, findings, repair);
    }

    /// Learns the flows of repaired ports: the kernel may have begun some, or the programs may have missed
    /// some. One dump of conntrack serves all; until then these ports leave unknown flows to the kernel.
    pub(crate) fn learn_unsure(&mut self) {
        let mut unsure = std::mem::take(&mut self.repairs.unsure);
        unsure.retain(|ifindex| self.registry.by_host(*ifindex).is_some());
        if !unsure.is_empty() {
            self.learn(&unsure);
        }
    }
}
