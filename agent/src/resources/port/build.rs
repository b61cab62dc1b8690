//! Makes a port that an attachment asks for, and all that it needs.

use shunt_agent_api::BridgePort;
use shunt_dataplane::wire::address::Mac;
use shunt_netlink::link::Link;

use crate::capacity::Demand;
use crate::registry::{Attachment, PeerEnd};
use crate::resources::reconcile::{Cause, Resource as _};
use crate::resources::{Node, Refusal};

impl Node {
    /// Whether a port's host end is gone.
    ///
    /// # Errors
    /// Netlink's.
    pub(crate) fn is_gone(&mut self, port: &BridgePort) -> Result<bool, Refusal> {
        Ok(self.kernel.link(port.host.index)?.is_none_or(|link| link.name != port.host.name))
    }

    /// Registers a new port, and makes it and all that it needs.
    pub(crate) fn build(
        &mut self,
        port: &BridgePort,
        mac: Mac,
        host: &Link,
        bridge: Link,
    ) -> Result<(), Refusal> {
        self.kernel.limit_ingress(port)?;
        let slot = self.take_slot()?;
        let peer = PeerEnd::new(host.carrier, port.peer_up);
        let external = self.kernel.external(host.index)?;
        let (is_parent, lent) = self.parenthood(&port.host);
        let attachment =
            Attachment { port: port.clone(), mac, slot, peer, external, abandoned: false, is_parent, lent };
        self.registry.insert(attachment.clone());
        self.foreign_ports.remove(&host.index);
        self.ledger.allocate(&port.key, Demand::from(&port.bandwidth));
        if port.vlan.is_none() {
            self.build_bridge(bridge)?;
        }
        self.build_uplink(port)?;
        self.build_gateway(port)?;
        // A filter that was added has to be seen before this container sends; one that was removed may be
        // seen later.
        if attachment.is_masqueraded() && self.datapath.begins_masquerading {
            self.look_for_external_filters();
        }
        attachment.apply(self, Cause::New)?;
        self.build_trunk(&attachment)?;
        if !port.mappings.is_empty() {
            self.update_nat_ingress();
            self.follow_mappings(&[], &port.mappings);
        }
        if attachment.is_masqueraded() && !self.has_masquerade_interfaces() {
            self.update_nat_ingress();
        }
        Ok(())
    }
}
