//! What is done each second.

use std::time::{Duration, Instant};

use crate::resources::Node;

/// Time of one check per second, while nothing is wrong.
const CALM: Duration = Duration::from_micros(500);

/// The same for a while after something was: then more may be.
const ALARMED: Duration = Duration::from_millis(10);

/// Attachments of one check at least, however long they take.
const LEAST: usize = 8;

impl Node {
    /// One look at everything.
    pub(crate) fn tick(&mut self) {
        self.finish_what_failed();
        self.ask_the_kernel();
        self.reattach_orphans();
        for desired in [Self::desired_basis, Self::desired_links, Self::desired_bridges] {
            desired(self).iter().for_each(|resource| self.reconcile(&**resource));
        }
        self.repair_ports();
        let leases = self.desired_leases_in_turn();
        leases.iter().for_each(|lease| self.reconcile(&**lease));
        self.remove_what_has_ended();
        self.learn_unsure();
        self.look_after_watchers();
    }

    /// What could not be written or removed before.
    fn finish_what_failed(&mut self) {
        self.store.retry();
        self.write_departed();
        self.finish_removals();
        self.sweep_leftovers();
    }

    /// What is desired because of something on the node that nobody tells the agent of.
    fn ask_the_kernel(&mut self) {
        self.read_speeds();
        self.tell_capacity();
        self.check_masquerading();
        self.follow_who_masquerades();
        self.follow_others_rules();
        self.follow_ways_in();
        self.follow_local_routes();
        self.update_reverse_paths();
    }

    /// What ends by itself: moved addresses that nobody names any more, connections, stations beyond uplinks.
    fn remove_what_has_ended(&mut self) {
        self.return_relocations();
        self.sweep_flows();
        self.sweep_kernel_flows();
        self.sweep_learned();
    }

    /// Checks and repairs attachments: of the programs of many, and of the rest of as many as the budget allows.
    fn repair_ports(&mut self) {
        for key in std::mem::take(&mut self.repairs.deferred) {
            self.repair_attachment(&key);
        }
        self.repair_programs();
        let budget = if self.repairs.is_alarmed() { ALARMED } else { CALM };
        let begun = Instant::now();
        for checked in 1..=self.registry.len() {
            let Some(key) = self.registry.after(self.repairs.last.as_ref()).cloned() else { break };
            self.repair_attachment(&key);
            self.repairs.last = Some(key);
            if checked >= LEAST && begun.elapsed() > budget {
                break;
            }
        }
    }
}
