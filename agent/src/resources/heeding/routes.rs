//! Whether the programs know which way a packet takes that the kernel routes: what takes another one is not carried.

use std::time::{Duration, Instant};

use shunt_dataplane::abi::HEEDING_MARKED_ROUTES;
use shunt_netlink::NetlinkError;
use shunt_netlink::netfilter::has_ipsec_policies;
use shunt_netlink::policy_rule::selectors;

/// Between two looks.
const PERIOD: Duration = Duration::from_secs(5);

/// What was found last.
#[derive(Debug, Default)]
pub(super) struct Routes {
    looked: Option<Instant>,
    /// Some depend on marks: what leaves with one is not carried.
    are_marked: bool,
    /// Some depend on what the programs do not ask for, or IPsec has policies: nothing is carried. So it is before the first look.
    are_known: bool,
}

impl Routes {
    /// Looks again, if it is time. Where nobody can be asked, nothing is known.
    pub(super) fn look(&mut self) {
        if self.looked.is_some_and(|looked| looked.elapsed() < PERIOD) {
            return;
        }
        self.looked = Some(Instant::now());
        if let Err(error) = self.find() {
            tracing::debug!(%error, "policy rules cannot be listed: nothing is carried");
            (self.are_marked, self.are_known) = (true, false);
        }
    }

    fn find(&mut self) -> Result<(), NetlinkError> {
        let selectors = selectors()?;
        self.are_marked = selectors.by_mark;
        self.are_known = !selectors.by_kind && !has_ipsec_policies();
        Ok(())
    }

    /// Whether the programs find them.
    pub(super) const fn are_known(&self) -> bool {
        self.are_known
    }

    /// As [`shunt_dataplane::abi::Heeding::flags`].
    pub(super) const fn flags(&self) -> u32 {
        if self.are_marked { HEEDING_MARKED_ROUTES } else { 0 }
    }
}
