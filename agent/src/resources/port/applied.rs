//! Gives a port its entries and programs, whatever of them it has.

use crate::capacity::Demand;
use crate::datapath::{FlowAffinity, encode, programs};
use crate::kernel::KernelError;
use crate::registry::Attachment;
use crate::registry::PeerEnd;
use crate::resources::node::Entries;
use crate::resources::{Finding, Node, Refusal};
use shunt_agent_api::BridgePort;
use shunt_dataplane::wire::address::Mac;
use shunt_netlink::link::Link;

impl Node {
    pub(crate) fn is_gone(&mut self, port: &BridgePort) -> Result<bool, Refusal> {
        Ok(self.kernel.link(port.host.index)?.is_none_or(|link| link.name != port.host.name))
    }

    /// Gives a new port all that it needs, and those that it needs.
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
        self.datapath.write_port(&attachment, FlowAffinity::Fast)?;
        self.build_trunk(&attachment)?;
        self.datapath.attach_all(&programs::of_port(&attachment))?;
        if !port.mappings.is_empty() {
            self.datapath.write_mappings(&attachment)?;
            self.update_nat_ingress();
            self.follow_mappings(&[], &port.mappings);
        }
        if attachment.is_masqueraded() && !self.has_masquerade_interfaces() {
            self.update_nat_ingress();
        }
        Ok(())
    }

    /// Returns false if a program or an entry was missing; then the port learns before it is attached again.
    pub(crate) fn adopt_port(
        &mut self,
        attachment: &Attachment,
        entries: &Entries,
    ) -> Result<bool, KernelError> {
        let entry = entries.get(&attachment.port.host.index);
        let mut intact = entry.is_some_and(|entry| *entry == encode::port(attachment, entry.asks));
        let mut missing = Vec::new();
        for hook in programs::of_port(attachment) {
            if !self.datapath.adopt(&hook)? {
                missing.push(hook);
            }
        }
        intact &= missing.is_empty();
        if intact {
            self.datapath.write_policer(attachment)?;
            self.datapath.write_station(attachment)?;
            self.datapath.write_addresses(attachment)?;
            self.datapath.write_masquerades(attachment)?;
            self.datapath.write_membership(attachment)?;
        } else {
            self.datapath.write_port(attachment, FlowAffinity::Learn)?;
        }
        for hook in &missing {
            tracing::warn!(key = %attachment.port.key, %hook, "attached again");
            self.datapath.attach(hook)?;
        }
        self.datapath.write_mappings(attachment)?;
        Ok(intact)
    }

    pub(crate) fn apply_repairs(
        &mut self,
        attachment: &Attachment,
        findings: &[Finding],
    ) -> Result<(), Refusal> {
        let port = &attachment.port;
        for finding in findings {
            match finding {
                Finding::Master { .. } => {
                    let flags = self.repairs.flags_of(attachment);
                    self.kernel.enslave(
                        port.host.index,
                        port.bridge.index,
                        flags,
                        attachment.known_station(),
                    )?;
                }
                Finding::Flags { .. } => {
                    let flags = self.repairs.flags_of(attachment);
                    self.kernel.set_port_flags(port.host.index, flags, attachment.known_station())?;
                }
                Finding::Station { .. } => {
                    let Some(mac) = attachment.known_station() else { continue };
                    self.kernel.add_station(port.host.index, mac)?;
                }
                Finding::Limit(_) => self.kernel.limit(port)?,
                Finding::StateFile => self.store.write(port)?,
                Finding::Entry { .. }
                | Finding::Program(_)
                | Finding::Driver(_)
                | Finding::Link(_)
                | Finding::Mac(_)
                | Finding::Pin(_)
                | Finding::Relocation { .. }
                | Finding::Address { .. } => {}
            }
        }
        if findings.iter().any(|finding| matches!(finding, Finding::Entry { .. } | Finding::Program(_))) {
            let entries = self.entry_of(port.host.index)?;
            self.adopt_port(attachment, &entries)?;
            self.repairs.unsure.insert(port.host.index);
        }
        Ok(())
    }
}
