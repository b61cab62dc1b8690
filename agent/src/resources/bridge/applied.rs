//! Gives a bridge its entries and its program, whatever of them it has.

use shunt_netlink::link::Link;

use crate::datapath::{FlowAffinity, encode, programs};
use crate::kernel::KernelError;
use crate::registry::Bridge;
use crate::resources::node::Entries;
use crate::resources::{Finding, Node, Refusal};

impl Node {
    /// Registers an attachment's bridge and attaches its program, once.
    pub(crate) fn build_bridge(&mut self, link: Link) -> Result<(), Refusal> {
        if self.registry.bridge(link.index).is_some_and(|known| known.link.name == link.name) {
            return Ok(());
        }
        let slot = self.take_slot()?;
        let bridge = Bridge { link, slot };
        self.registry.insert_bridge(bridge.clone());
        self.datapath.write_bridge(&bridge)?;
        self.find_foreign_ports_on(bridge.link.index)?;
        self.datapath.attach(&programs::of_bridge(&bridge))?;
        self.update_nat_ingress();
        Ok(())
    }

    /// Returns false if its program was missing; then its ports learn before it is attached again.
    pub(crate) fn adopt_bridge(&mut self, bridge: &Bridge, entries: &Entries) -> Result<bool, KernelError> {
        match entries.get(&bridge.link.index) {
            // The station is a separate entry: an agent that was killed may have written only the other.
            Some(entry) if *entry == encode::bridge_port(bridge) => {
                self.datapath.write_bridge_station(bridge)?;
            }
            _ => self.datapath.write_bridge(bridge)?,
        }
        if self.datapath.adopt(&programs::of_bridge(bridge))? {
            return Ok(true);
        }
        for attachment in self.registry.of_bridge(bridge.link.index) {
            self.datapath.write_port(attachment, FlowAffinity::Learn)?;
        }
        tracing::warn!(hook = %programs::of_bridge(bridge), "attached again");
        self.datapath.attach(&programs::of_bridge(bridge))?;
        Ok(false)
    }

    pub(crate) fn repair_bridge(&mut self, bridge: &Bridge) {
        let findings = self.audit_bridge_patiently(bridge);
        if self.repairs.is_off() || matches!(findings.as_deref(), Ok([Finding::Link(_)])) {
            return;
        }
        let name = bridge.link.name.clone();
        let repair = |node: &mut Self, findings: &[Finding]| {
            for finding in findings {
                if let Finding::Address { address, .. } = finding {
                    node.kernel.add_address(bridge.link.index, *address)?;
                }
            }
            let entries = node.entry_of(bridge.link.index)?;
            if !node.adopt_bridge(bridge, &entries)? {
                let ports = node.registry.of_bridge(bridge.link.index);
                node.repairs.unsure.extend(ports.map(|attachment| attachment.port.host.index));
            }
            node.audit_bridge(bridge)
        };
        self.repair_findings(&name, None, &name, findings, repair);
    }

    /// A bridge without a configured MAC address takes that of a new port.
    pub(crate) fn bridge_changed(&mut self, known: &Bridge, link: &Link) -> Result<(), Refusal> {
        let bridge = Bridge { link: link.clone(), slot: known.slot };
        self.registry.insert_bridge(bridge.clone());
        if known.link.mac != link.mac || known.link.mtu != link.mtu {
            self.datapath.erase_bridge_station(known)?;
            self.datapath.write_bridge(&bridge)?;
        }
        Ok(())
    }
}
