//! Warns about other users' rules for forwarded packets that the fast path bypasses.
//!
//! Masquerading is left to the kernel while such rules exist ([`super::interfaces`]). Host ports and bridged packets have no path through
//! the kernel, so the operator gets a warning. Packets that are routed between bridges always take the kernel's path.

use super::external_filters::{self, Forwarding};
use crate::resources::Node;

impl Node {
    /// The warnings about bypassed rules. If rules cannot be listed, there is no warning.
    pub(crate) fn external_filter_warnings(&self) -> Vec<String> {
        let is_bridged = self.registry.attachments().any(|attachment| attachment.port.vlan.is_none());
        if !is_bridged {
            return Vec::new();
        }
        let Forwarding { routed, bridged } = external_filters::forwarding().unwrap_or_else(|error| {
            tracing::debug!(%error, "cannot list external filters");
            Forwarding::default()
        });
        let mapped = routed.filter(|_| self.is_mapped());
        let mapped = mapped.map(|who| format!("traffic to host ports bypasses {who}"));
        let bridged = bridged.map(|who| format!("traffic between containers of one bridge bypasses {who}"));
        mapped.into_iter().chain(bridged).collect()
    }
}
