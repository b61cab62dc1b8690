//! Gives a bridge its entries and its program, whatever of them it has.

use shunt_dataplane::abi::Port;
use shunt_netlink::link::Link;

use super::sparing::may_spare;
use crate::datapath::{FlowAffinity, encode, programs};
use crate::kernel::KernelError;
use crate::registry::Bridge;
use crate::resources::reconcile::{Cause, Resource};
use crate::resources::{Finding, Node, Refusal};

impl Resource for Bridge {
    fn name(&self) -> String {
        self.link.name.clone()
    }

    fn ifname(&self) -> &str {
        &self.link.name
    }

    fn observe(&self, node: &mut Node) -> Result<Vec<Finding>, Refusal> {
        node.audit_bridge(self)
    }

    fn observe_patiently(&self, node: &mut Node) -> Result<Vec<Finding>, Refusal> {
        node.audit_bridge_patiently(self)
    }

    fn apply(&self, node: &mut Node, cause: Cause<'_>) -> Result<(), Refusal> {
        let index = self.link.index;
        match cause {
            Cause::New => {
                node.datapath.write_bridge(self)?;
                node.spare(self)?;
                node.find_foreign_ports_on(index)?;
                let hook = programs::of_bridge(self);
                // Ports that have stayed as they were kept it.
                if node.datapath.is_pinned(&hook) {
                    node.datapath.ensure(&hook)?;
                    return Ok(());
                }
                Ok(node.datapath.attach(&hook)?)
            }
            Cause::Start(entries) => Ok(node.complete_bridge(self, entries.get(&index))?),
            Cause::Repair(findings) => {
                for finding in findings {
                    if let Finding::Address { address, .. } = finding {
                        node.kernel.add_address(index, *address)?;
                    }
                }
                let entry = node.datapath.port(index)?;
                Ok(node.complete_bridge(self, entry.as_ref())?)
            }
        }
    }
}

impl Node {
    /// Registers an attachment's bridge and makes it, once.
    pub(crate) fn build_bridge(&mut self, link: Link) -> Result<(), Refusal> {
        if self.registry.bridge(link.index).is_some_and(|known| known.link.name == link.name) {
            return Ok(());
        }
        let slot = self.take_slot()?;
        let heeded = self.heeding.is_node_heeded(link.index);
        let bridge = Bridge { heeded, link, slot };
        self.registry.insert_bridge(bridge.clone());
        bridge.apply(self, Cause::New)?;
        self.update_nat_ingress();
        Ok(())
    }

    /// Gives a bridge what it lacks. Where its program was missing, its ports learn before it is attached again:
    /// the kernel may have begun flows.
    fn complete_bridge(&mut self, bridge: &Bridge, entry: Option<&Port>) -> Result<(), KernelError> {
        match entry {
            // The station is a separate entry: an agent that was killed may have written only the other.
            Some(entry) if encode::as_written(*entry) == encode::bridge_port(bridge) => {
                self.datapath.write_bridge_station(bridge)?;
            }
            _ => self.datapath.write_bridge(bridge)?,
        }
        if !self.datapath.spares || !may_spare(&bridge.link) {
            self.datapath.end_sparing(bridge.link.index)?;
        }
        if self.datapath.adopt(&programs::of_bridge(bridge))? {
            return Ok(());
        }
        // Without its program nobody has heard what the node has said.
        self.datapath.end_sparing(bridge.link.index)?;
        for attachment in self.registry.of_bridge(bridge.link.index) {
            self.datapath.write_port(attachment, FlowAffinity::Learn)?;
            self.repairs.unsure.insert(attachment.port.host.index);
        }
        tracing::warn!(hook = %programs::of_bridge(bridge), "attached again");
        Ok(self.datapath.attach(&programs::of_bridge(bridge))?)
    }

    /// A bridge without a configured MAC address takes that of a new port.
    pub(crate) fn bridge_changed(&mut self, known: &Bridge, link: &Link) -> Result<(), Refusal> {
        let bridge = Bridge { link: link.clone(), ..*known };
        self.registry.insert_bridge(bridge.clone());
        if !may_spare(link) {
            self.datapath.end_sparing(link.index)?;
        }
        if known.link.mac != link.mac || known.link.mtu != link.mtu {
            self.datapath.erase_bridge_station(known)?;
            self.datapath.write_bridge(&bridge)?;
        }
        if known.link.bridging.filters_vlans != link.bridging.filters_vlans {
            self.heed_all(link.index)?;
        }
        Ok(())
    }
}
