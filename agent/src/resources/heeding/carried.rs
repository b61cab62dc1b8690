//! Connections that the kernel has opened and carries though it opens none any more: the chain that has them translated goes with the last of them.

use std::time::{Duration, Instant};

use super::opening::Carried;
use crate::resources::Node;
use crate::resources::tracked::{Answer, Order};

/// Between two looks for them.
const PERIOD: Duration = Duration::from_secs(10);

/// When a look that is not answered is taken for lost.
const LOST: Duration = Duration::from_secs(60);

impl Node {
    /// Has somebody look for them beside the agent's thread, unless one does.
    pub(super) fn look_for_carried(&mut self) {
        let is_due = |it: &Carried| it.at.elapsed() >= if it.look.is_none() { PERIOD } else { LOST };
        if !self.heeding.opening.carried.as_ref().is_some_and(is_due) || self.opens_host_ports() {
            return;
        }
        let ips = self.registry.attachments().flat_map(|attachment| attachment.port.ips.iter().copied());
        let places = ips.collect();
        let number = self.heeding.opening.next();
        if self.tracker.order(Order::Look(number, places)) {
            let at = Instant::now();
            self.heeding.opening.carried = Some(Carried { at, look: Some(number) });
        }
    }

    /// Does what follows from the answers. One to a look before the last change of who opens is of no use any more.
    pub(super) fn hear_of_connections(&mut self) {
        for answer in self.tracker.answers() {
            match answer {
                Answer::Carried(number, is_any) => self.hear_of_carried(number, is_any),
                Answer::Claimed(number) => self.hear_of_claims(number),
            }
        }
    }

    fn hear_of_carried(&mut self, number: u64, is_any: bool) {
        let is_asked = |carried: &Carried| carried.look == Some(number);
        if !self.heeding.opening.carried.as_ref().is_some_and(is_asked) {
            return;
        }
        self.heeding.opening.carried = is_any.then(Carried::now);
        if !is_any && let Err(error) = self.set_rules() {
            tracing::warn!(%error, "cannot remove a chain of translations");
        }
    }
}
