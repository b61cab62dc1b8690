//! Checks every second that the programs are attached.
//!
//! The kernel sends no event for a detached tcx link, and a container without its program is unprotected. All attachments are checked, as
//! many as [`BUDGET`] allows; everything else is checked in turn (`agent/schedule.rs`).

use std::time::{Duration, Instant};

use shunt_agent_api::AttachmentKey;

use crate::datapath::programs;
use crate::resources::Node;

/// Time of one check per second.
const BUDGET: Duration = Duration::from_millis(25);

/// Attachments between two reads of the clock.
const AT_A_TIME: usize = 16;

impl Node {
    /// Reattaches missing programs, continuing where the last check stopped.
    pub(crate) fn repair_programs(&mut self) {
        if self.repairs.is_off() {
            return;
        }
        let begun = Instant::now();
        let mut left = self.registry.len();
        while left > 0 && begun.elapsed() < BUDGET {
            for _ in 0..left.min(AT_A_TIME) {
                let Some(key) = self.registry.after(self.repairs.watched.as_ref()).cloned() else { return };
                if self.has_lost_a_program(&key) {
                    self.repair_attachment(&key);
                }
                self.repairs.watched = Some(key);
            }
            left -= left.min(AT_A_TIME);
        }
    }

    /// A failed query is not a missing program: its link is probably gone.
    fn has_lost_a_program(&mut self, key: &AttachmentKey) -> bool {
        let hooks = self.registry.get(key).map(programs::of_port).unwrap_or_default();
        hooks.iter().any(|hook| matches!(self.datapath.is_attached(hook), Ok(false)))
    }
}
