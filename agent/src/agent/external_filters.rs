//! Whose rules for forwarded packets are gone past: the kernel forwards nothing of what the programs deliver.
//!
//! Masquerading yields to such rules ([`super::masquerade`]), for a container's way to the world is the kernel's as well. Host ports
//! and what is bridged have no other way, so an operator is told. What is routed from bridge to bridge is the kernel's always.

use super::Agent;
use crate::external_filters::{self, Forwarding};

impl Agent {
    /// What an operator who has such rules should know, as it is right now. Whoever cannot be asked has none.
    pub(super) fn external_filter_warnings(&self) -> Vec<String> {
        let is_bridged = self.registry.attachments().any(|attachment| attachment.port.vlan.is_none());
        if !is_bridged {
            return Vec::new();
        }
        let Forwarding { routed, bridged } = external_filters::forwarding().unwrap_or_else(|error| {
            tracing::debug!(%error, "cannot list external filters");
            Forwarding::default()
        });
        let mapped = routed.filter(|_| self.is_mapped());
        let mapped = mapped.map(|who| format!("host-port traffic bypasses {who}"));
        let bridged = bridged.map(|who| format!("traffic between containers of one bridge bypasses {who}"));
        mapped.into_iter().chain(bridged).collect()
    }
}
