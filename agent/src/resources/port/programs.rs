//! Checks every second that programs are attached.
//!
//! The kernel sends no event for a detached tcx link, and a container without its program is unprotected. A hundred attachments or a
//! tenth of all are checked at least, and as many as the budget allows; everything else is checked in turn (`agent/schedule.rs`).

use std::time::{Duration, Instant};

use shunt_agent_api::AttachmentKey;

use crate::datapath::programs;
use crate::resources::Node;

/// Time of one check per second, while nothing is wrong and the least has been looked at.
const CALM: Duration = Duration::from_micros(500);

/// The same otherwise, repairs included.
const ALARMED: Duration = Duration::from_millis(25);

/// Within so many checks each attachment is looked at, and so many at each check at least.
const CHECKS: usize = 10;
const LEAST: usize = 100;

/// Attachments between two reads of the clock.
const AT_A_TIME: usize = 16;

impl Node {
    /// Reattaches missing programs, continuing where the last check stopped.
    pub(crate) fn repair_programs(&mut self) {
        if self.repairs.is_off() {
            return;
        }
        let (begun, all) = (Instant::now(), self.registry.len());
        let (least, mut checked) = (LEAST.max(all.div_ceil(CHECKS)), 0);
        while checked < all && begun.elapsed() < self.programs_budget(checked < least) {
            let count = AT_A_TIME.min(all - checked);
            for key in self.next_without_a_program(count) {
                self.repair_attachment(&key);
            }
            checked += count;
        }
    }

    /// One that is missing alarms, and the others are looked at in the same second, as far as repairs leave time for that.
    fn programs_budget(&self, is_least: bool) -> Duration {
        if is_least || self.repairs.is_alarmed() { ALARMED } else { CALM }
    }

    /// Looks at the next `count` attachments: those that have lost a program.
    fn next_without_a_program(&mut self, count: usize) -> Vec<AttachmentKey> {
        let from = self.repairs.watched.take();
        let (mut last, mut lost) = (None, Vec::new());
        for attachment in self.registry.round_after(from.as_ref()).take(count) {
            let key = &attachment.port.key;
            if self.datapath.has_lost_any(&attachment.port.host, &programs::on_port(attachment)) {
                lost.push(key.clone());
            }
            last = Some(key);
        }
        self.repairs.watched = last.cloned().or(from);
        lost
    }
}
