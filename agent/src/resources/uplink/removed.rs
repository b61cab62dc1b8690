//! Releases an uplink.

use shunt_agent_api::BridgePort;

use super::observed::fault_name;
use super::validation::names;
use crate::datapath::programs;
use crate::registry::Uplink;
use crate::resources::Gravity;
use crate::resources::node::Entries;
use crate::resources::{Failures, Node};

impl Node {
    /// Releases a removed attachment's uplink, unless another attachment of the bridge names it.
    pub(crate) fn leave_uplink(&mut self, port: &BridgePort) -> Failures {
        let Some(wanted) = &port.service.uplink else { return Failures::default() };
        if self.registry.of_bridge(port.bridge.index).any(|other| names(&other.port, &wanted.name)) {
            return Failures::default();
        }
        self.repairs.resolve(&(Gravity::Fault, fault_name(&wanted.name)));
        let is_it = |uplink: &&Uplink| uplink.link.name == wanted.name && uplink.bridge == port.bridge;
        let uplink = self.registry.uplinks.values().find(is_it).cloned();
        if let Some(uplink) = &uplink {
            self.registry.uplinks.remove(&uplink.link.index);
        }
        let is_moved = self.relocations.get(&wanted.name).is_some_and(|known| known.bridge == port.bridge);
        if is_moved {
            self.return_relocation(&wanted.name);
        }
        let mut failures = Failures::default();
        let Some(uplink) = uplink else { return failures };
        if !uplink.kept && !is_moved {
            failures.note(self.kernel.release_uplink(&uplink));
        }
        failures.extend(self.take_uplink(&uplink));
        // The former uplink may be a foreign port now.
        failures.note(self.find_foreign_ports(&Entries::new()));
        failures
    }

    fn take_uplink(&mut self, uplink: &Uplink) -> Failures {
        let mut failures = Failures::default();
        failures.note(self.datapath.detach_native(uplink.link.index));
        for hook in programs::of_uplink(uplink) {
            failures.note(self.datapath.detach_and_wait(&hook));
        }
        // The entry is removed last: a program that is still attached would drop all packets without it.
        if failures.is_empty() {
            failures.extend(self.datapath.erase_uplink(uplink));
        }
        self.registry.slots.give_back(uplink.slot);
        if let Err(error) = self.serve_natives(uplink.bridge.index) {
            tracing::warn!(bridge = %uplink.bridge.name, %error, "cannot update XDP on the bridge's other uplinks");
        }
        failures
    }

    /// The link is gone.
    pub(crate) fn uplink_deleted(&mut self, index: u32) {
        let Some(uplink) = self.registry.uplinks.remove(&index) else { return };
        tracing::warn!(uplink = %uplink.link.name, bridge = %uplink.bridge.name, "uplink deleted");
        for error in self.take_uplink(&uplink) {
            tracing::warn!(uplink = %uplink.link.name, %error, "cannot remove the uplink's programs and entries");
        }
    }
}
