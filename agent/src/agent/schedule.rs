//! What is done each second.

use std::time::{Duration, Instant};

use crate::resources::Node;

/// Time of one check per second.
const BUDGET: Duration = Duration::from_millis(10);

impl Node {
    /// Checks and repairs uplinks, bridges and attachments, as many as the budget allows.
    pub(crate) fn tick(&mut self) {
        self.store.retry();
        self.finish_removals();
        self.sweep_leftovers();
        self.read_speeds();
        self.tell_capacity();
        self.reattach_orphans();
        self.check_masquerading();
        self.update_reverse_paths();
        for desired in [Self::desired_basis, Self::desired_links, Self::desired_bridges] {
            desired(self).iter().for_each(|resource| self.reconcile(&**resource));
        }
        self.return_relocations();
        self.sweep_flows();
        self.sweep_learned();
        for key in std::mem::take(&mut self.repairs.deferred) {
            self.repair_attachment(&key);
        }
        self.repair_programs();
        let leases = self.desired_leases_in_turn();
        leases.iter().for_each(|lease| self.reconcile(&**lease));
        let begun = Instant::now();
        for _ in 0..self.registry.len() {
            let Some(key) = self.registry.after(self.repairs.last.as_ref()).cloned() else { break };
            self.repair_attachment(&key);
            self.repairs.last = Some(key);
            if begun.elapsed() > BUDGET {
                break;
            }
        }
        self.learn_unsure();
    }
}
