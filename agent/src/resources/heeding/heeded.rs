//! Which ports are heeded, and what an operator has to know of it.

use shunt_agent_api::BridgePort;

use crate::resources::Node;

impl Node {
    /// Whether others' rules are heeded at a port.
    pub(crate) fn heeds(&self, port: &BridgePort) -> bool {
        port.is_bridged()
            && self.heeding.applies(self.heeding.mode_of(port.bridge.index, port.service.filters))
    }

    /// What an operator has to know of it.
    pub(crate) fn heeding_warnings(&self) -> Vec<String> {
        if !self.heeding.is_on || !self.registry.has_heeded() {
            return Vec::new();
        }
        let kept = self.heeding.kept.by.as_ref().map(|by| {
            format!("flows between containers stay with the kernel, as others' rules may judge each of their packets: {by}")
        });
        kept.or_else(|| self.heeding.tracking.warning()).into_iter().collect()
    }
}
