//! Repairs ports.

use shunt_agent_api::AttachmentKey;

use crate::resources::Node;

impl Node {
    /// Checks and repairs an attachment.
    pub(crate) fn repair_attachment(&mut self, key: &AttachmentKey) {
        let host = self.registry.get(key).map(|attachment| attachment.port.host.index);
        if let Some(Err(error)) = host.map(|host| self.heed(host)) {
            tracing::warn!(%key, %error, "cannot read the settings of the bridge's port");
        }
        if let Some(attachment) = self.registry.get(key).cloned() {
            self.reconcile(&attachment);
        }
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
