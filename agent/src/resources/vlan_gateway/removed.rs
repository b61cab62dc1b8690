//! Removes a gateway.

use std::collections::BTreeSet;

use ipnet::IpNet;
use shunt_agent_api::{BridgePort, Interface};
use shunt_dataplane::abi::PORT_FOREIGN;

use super::observed::fault_name;
use crate::datapath::maps::remove;
use crate::datapath::{encode, in_map, programs};
use crate::kernel::KernelError;
use crate::registry::VlanGateway;
use crate::registry::vlan_gateway::{self, Place};
use crate::resources::Gravity;
use crate::resources::Node;
use crate::resources::node::{Entries, Links};

impl Node {
    /// Removes a removed attachment's gateway, or only its addresses while other attachments need the
    /// gateway.
    pub(crate) fn leave_gateway(&mut self, port: &BridgePort) -> Vec<KernelError> {
        let Some(place) = vlan_gateway::place(port) else { return Vec::new() };
        let wanted: BTreeSet<IpNet> = self.wanting(place).flat_map(vlan_gateway::addresses).collect();
        if self.wanting(place).next().is_none() {
            return self.remove_gateway(place, &port.bridge);
        }
        let Some(index) = self.registry.gateways.get(&place).map(|it| it.link.index) else {
            return Vec::new();
        };
        let unwanted = vlan_gateway::addresses(port).filter(|address| !wanted.contains(address));
        unwanted.filter_map(|address| self.kernel.remove_address(index, address).err()).collect()
    }

    pub(crate) fn remove_gateway(&mut self, place: Place, bridge: &Interface) -> Vec<KernelError> {
        let name = fault_name(&vlan_gateway::names(bridge, place.1).0);
        self.repairs.resolve(&(Gravity::Fault, name));
        let Some(gateway) = self.registry.gateways.remove(&place) else {
            return self.remove_unfinished(place, bridge).err().into_iter().collect();
        };
        let errors = self.delete_gateway(&gateway);
        self.registry.slots.give_back(gateway.port.slot);
        self.repairs.unaddressed.remove(&gateway.link.index);
        self.update_nat_ingress();
        errors
    }

    /// Deletes a pair that was created but not registered.
    fn remove_unfinished(&mut self, place: Place, bridge: &Interface) -> Result<(), KernelError> {
        let (node, bridged) = vlan_gateway::names(bridge, place.1);
        match self.kernel.gateway_ends((&node, &bridged))? {
            Some((_, port)) => self.kernel.delete_link(&port),
            None => Ok(()),
        }
    }

    /// Deletes a gateway's pair, programs and entries. Continues after errors. If the pair cannot be deleted,
    /// its entries stay: the port fails closed, and the next agent finds it.
    pub(crate) fn delete_gateway(&mut self, gateway: &VlanGateway) -> Vec<KernelError> {
        let host = &gateway.port.port.host;
        let mut errors = self.kernel.delete_ends([host, &gateway.link]);
        // Deleting one end deletes the other.
        let is_gone = errors.len() < 2;
        // Removing a pin after its device needs no grace period.
        for hook in programs::of_port(&gateway.port) {
            errors.extend(self.datapath.detach(&hook).err().map(KernelError::from));
        }
        if is_gone {
            let erased = remove(&mut self.datapath.maps.ports, &encode::port_key(gateway.link.index));
            errors.extend(erased.map_err(in_map("PORTS")).err().map(KernelError::from));
            errors.extend(self.datapath.erase_port(&gateway.port).into_iter().map(KernelError::from));
        }
        errors
    }

    /// Removes an earlier agent's gateways that no attachment needs: those with an entry in `PORTS`, and
    /// those of the attachments in `lost`.
    pub(crate) fn sweep_gateways(&mut self, entries: &Entries, links: &Links, lost: &[BridgePort]) {
        let ours = entries.iter().filter(|(_, entry)| entry.flags & PORT_FOREIGN == 0);
        let left = ours.filter_map(|(index, entry)| {
            let name = vlan_gateway::port_name(entry.bridge, entry.vid);
            links.get(index).filter(|link| !self.is_known(link.index) && link.name == name).cloned()
        });
        for link in left.collect::<Vec<_>>() {
            tracing::info!(name = %link.name, "removed a VLAN gateway without an attachment");
            if let Err(error) = self.kernel.delete_link(&link) {
                tracing::warn!(name = %link.name, %error, "cannot remove the VLAN gateway");
            }
        }
        for port in lost {
            for error in self.leave_gateway(port) {
                tracing::warn!(key = %port.key, %error, "cannot remove the VLAN gateway");
            }
        }
    }
}
