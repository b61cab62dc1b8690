//! Whether routes depend on marks: then what leaves the node with one takes another way than the programs know, and is not carried.

use std::time::{Duration, Instant};

use shunt_dataplane::abi::HEEDING_MARKED_ROUTES;
use shunt_netlink::policy_rule::is_any_by_mark;

/// Between two looks at the policy rules.
const PERIOD: Duration = Duration::from_secs(5);

/// What was found last.
#[derive(Debug, Default)]
pub(super) struct MarkedRoutes {
    looked: Option<Instant>,
    are_there: bool,
}

impl MarkedRoutes {
    /// Looks again, if it is time. Whoever cannot be asked may have some.
    pub(super) fn look(&mut self) {
        if self.looked.is_some_and(|looked| looked.elapsed() < PERIOD) {
            return;
        }
        self.looked = Some(Instant::now());
        self.are_there = is_any_by_mark().unwrap_or_else(|error| {
            tracing::debug!(%error, "policy rules cannot be listed: routes may depend on marks");
            true
        });
    }

    /// As [`shunt_dataplane::abi::Heeding::flags`].
    pub(super) const fn flags(&self) -> u32 {
        if self.are_there { HEEDING_MARKED_ROUTES } else { 0 }
    }
}
