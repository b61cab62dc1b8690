//! Whether every program is still where it was attached. Nobody tells of a tcx link that is detached, and a container without its
//! program is without what keeps others from it: all are looked for every second, as far as [`BUDGET`] goes, and what else may be
//! wrong with an attachment when its turn comes (see `repair.rs`).

use std::time::{Duration, Instant};

use shunt_agent_api::AttachmentKey;

use super::Agent;

/// How long one look may take, of every second: enough for two thousand attachments and more.
const BUDGET: Duration = Duration::from_millis(25);

/// How many attachments are looked at before the clock is.
const AT_A_TIME: usize = 16;

impl Agent {
    /// Puts programs back that are gone, and goes on where it stopped the last time.
    pub(super) fn repair_programs(&mut self) {
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

    /// One of which the kernel says nothing has lost more than that.
    fn has_lost_a_program(&mut self, key: &AttachmentKey) -> bool {
        let hooks = self.registry.get(key).map(|attachment| attachment.hooks()).unwrap_or_default();
        hooks.iter().any(|hook| matches!(self.kernel.is_attached(hook), Ok(false)))
    }
}
