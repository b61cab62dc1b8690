//! Warns about other users' rules that traffic in the fast path bypasses.
//!
//! Masquerading is left to the kernel while there are rules for forwarded packets (`resources/masquerade`). Host ports and bridged packets
//! have no path through the kernel (bridged ones unless others' rules are heeded: `resources/heeding`), so `status`, `check` and the log of each ADD name the hooks where somebody has rules. Packets that are
//! routed between bridges always take the kernel's path.

use shunt_agent_api::BridgePort;
use shunt_netlink::NetlinkError;
use shunt_netlink::netfilter::BaseChain;

use super::filters;
use super::hooks::{self, Bypassed, Crossed};
use crate::registry::Attachment;
use crate::resources::Node;

/// Chains that one warning names.
const MOST: usize = 6;

impl Node {
    /// The warnings about bypassed rules. If rules cannot be listed, there is no warning.
    pub(crate) fn external_filter_warnings(&self) -> Vec<String> {
        let is_bridged = self.registry.attachments().any(|attachment| attachment.port.vlan.is_none());
        if !is_bridged {
            return Vec::new();
        }
        let found = filters::chains().and_then(|chains| Ok((self.crossed(None, &chains)?, chains)));
        let (crossed, chains) = found.unwrap_or_else(|error| {
            tracing::debug!(%error, "cannot list external filters");
            (Crossed::default(), Vec::new())
        });
        // What is for a host port has the node's address there.
        let Bypassed { host_ports, .. } = hooks::bypassed_of(&chains, &crossed);
        let Bypassed { bridged, from_node, .. } = self.without_harmless(&chains).bypassed(&crossed);
        let are_heeded = self.registry.attachments().all(|attachment| attachment.heeded);
        let bridged = if are_heeded { Vec::new() } else { bridged };
        let is_node_heeded = self.registry.bridges().all(|bridge| bridge.heeded);
        let from_node = if is_node_heeded { Vec::new() } else { from_node };
        let is_bypassed = |it: &Attachment| !it.port.mappings.is_empty() && !it.opened;
        let are_bypassed = self.registry.with_rules().any(is_bypassed);
        let host_ports = if are_bypassed { host_ports } else { Vec::new() };
        let all = [
            ("traffic to host ports", host_ports),
            ("traffic between containers of one bridge", bridged),
            ("traffic from the node to containers", from_node),
        ];
        let warning = |(what, who): (&str, Vec<String>)| {
            (!who.is_empty()).then(|| format!("{what} bypasses {}", listed(&who)))
        };
        all.into_iter()
            .filter_map(warning)
            .chain(self.heeding_warnings())
            .chain(self.refused_opening())
            .chain(self.preceded_host_ports())
            .collect()
    }

    /// Logs them for a container that was attached.
    pub(crate) fn log_bypassed(&self, port: &BridgePort) {
        for warning in self.external_filter_warnings() {
            tracing::warn!(key = %port.key, "{warning}");
        }
    }

    /// What traffic in the fast path crosses, also once a port has arrived: of the ports those that any of `chains` is at.
    ///
    /// # Errors
    /// The kernel cannot list its bridges.
    pub(crate) fn crossed(
        &self,
        arriving: Option<&BridgePort>,
        chains: &[BaseChain],
    ) -> Result<Crossed, NetlinkError> {
        let ports = self.registry.attachments().map(|attachment| &attachment.port).chain(arriving);
        let host_ends = ports.map(|port| &port.host.name);
        let uplinks = self.registry.uplinks.values().map(|uplink| &uplink.link.name);
        let uplink = arriving.and_then(|port| port.service.uplink.as_ref()).map(|uplink| &uplink.name);
        let bridges = self.registry.bridges().map(|bridge| bridge.link.name.clone());
        let crossed = Crossed {
            ports: hooks::with_chains(host_ends.chain(uplinks).chain(uplink), chains),
            ways_in: self.nat_ingress.hooks.values().map(|hook| hook.ifname.clone()).collect(),
            bridges: bridges.chain(arriving.map(|port| port.bridge.name.clone())).collect(),
            ..Crossed::default()
        };
        crossed.with_rules()
    }
}

/// A list for a person.
fn listed(who: &[String]) -> String {
    let more = who.len().saturating_sub(MOST);
    let named = who[..who.len() - more].join(", ");
    if more == 0 { named } else { format!("{named} and {more} more") }
}
