//! Which ports are heeded, and what an operator has to know of it.

use shunt_agent_api::BridgePort;

use crate::resources::Node;

impl Node {
    /// Whether others' rules are heeded at a port.
    pub(crate) fn heeds(&self, port: &BridgePort) -> bool {
        self.heeding.is_on && port.is_bridged()
    }

    /// What an operator has to know of it.
    pub(crate) fn heeding_warnings(&self) -> Vec<String> {
        let has_bridged = self.registry.attachments().any(|attachment| attachment.port.is_bridged());
        let tcp = self.heeding.tcp.as_ref().filter(|_| self.heeding.is_on && has_bridged);
        tcp.map(|why| {
            format!("TCP between containers stays with the kernel, as others' rules are heeded: {why}")
        })
        .into_iter()
        .collect()
    }
}
