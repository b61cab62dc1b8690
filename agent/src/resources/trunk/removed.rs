//! Leaves a trunk, and removes VLAN interfaces whose master is gone.

use shunt_agent_api::BridgePort;
use shunt_dataplane::wire::address::Mac;

use crate::datapath::programs;
use crate::registry::Trunk;
use crate::resources::{Failures, Node, delete_in_background};

impl Node {
    /// Detaches the program from a trunk after its last attachment was removed.
    pub(crate) fn leave_trunk(&mut self, port: &BridgePort, mac: Mac) -> Failures {
        let mut failures = Failures::default();
        let Some(trunk) = Trunk::of(port) else { return failures };
        let others: Vec<Mac> = self.registry.of_trunk(&trunk).map(|other| other.mac).collect();
        if !trunk.within && !others.contains(&mac) {
            failures.note(self.kernel.remove_filter_address(trunk.link.index, mac));
        }
        if others.is_empty() && self.registry.remove_trunk(&trunk) {
            failures.note(self.datapath.detach(&programs::of_trunk(&trunk)));
        }
        failures.note(self.tell_parent(&trunk));
        failures
    }

    /// A master was deleted: deletes its VLAN interfaces.
    pub(crate) fn trunks_deleted(&mut self, index: u32) {
        let lost: Vec<_> =
            self.registry.trunks().filter(|trunk| trunk.link.index == index).cloned().collect();
        for trunk in lost {
            let ports: Vec<_> = self.registry.of_trunk(&trunk).map(|lost| lost.port.clone()).collect();
            for port in ports {
                self.forget(&port.key, "its master is gone");
                self.delete_orphaned_interface(port);
            }
        }
    }

    /// Deletes a VLAN interface whose master is gone.
    pub(crate) fn delete_orphaned_interface(&mut self, port: BridgePort) {
        tracing::info!(key = %port.key, "VLAN interface deleted: its master is gone");
        delete_in_background(port.host, Vec::new(), self.kernel.grace_periods().clone());
    }
}
