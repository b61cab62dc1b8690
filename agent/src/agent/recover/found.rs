//! What the agent finds at its start: the namespace's links, and what an earlier agent wrote of them.

use shunt_agent_api::{BridgePort, Interface};
use shunt_netlink::link::Link;

use crate::kernel::KernelError;
use crate::resources::Node;
use crate::resources::node::{Entries, Links, PreviousSlots};

/// Links, entries and counters.
pub(super) struct Found {
    pub(super) links: Links,
    pub(super) entries: Entries,
    /// The counter slots of the entries, so that counters continue. What nobody takes is given back.
    pub(super) previous_slots: PreviousSlots,
}

impl Found {
    /// Reads them, and keeps the slots from new ports.
    ///
    /// # Errors
    /// The kernel cannot say.
    pub(super) fn read(node: &mut Node) -> Result<Self, KernelError> {
        let links = node.kernel.links()?.into_iter().map(|link| (link.index, link)).collect();
        let entries = node.port_entries()?;
        let previous_slots = entries
            .iter()
            .filter(|(_, entry)| node.registry.slots.claim(entry.slot))
            .map(|(ifindex, entry)| (*ifindex, entry.slot))
            .collect();
        Ok(Self { links, entries, previous_slots })
    }

    /// The link that still has an interface's index and name.
    pub(super) fn link(&self, interface: &Interface) -> Option<&Link> {
        self.links.get(&interface.index).filter(|link| link.name == interface.name)
    }

    /// Whether a port's host end is there, and its bridge is not.
    pub(super) fn has_lost_its_bridge(&self, port: &BridgePort) -> bool {
        self.link(&port.host).is_some() && self.link(&port.bridge).is_none()
    }

    /// An interface's earlier counter slot, or a new one.
    pub(super) fn slot(&mut self, node: &mut Node, ifindex: u32) -> Result<u32, String> {
        match self.previous_slots.remove(&ifindex) {
            Some(slot) => Ok(slot),
            None => node.take_slot_uncleared(),
        }
    }
}
