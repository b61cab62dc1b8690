//! Others' chains, listed again once somebody has changed any.

use std::time::{Duration, Instant};

use shunt_netlink::NetlinkError;
use shunt_netlink::netfilter::BaseChain;

use crate::resources::external_rule::filters;

/// How long a list is good: chains at an interface go with it, which no generation tells of.
const GOOD: Duration = Duration::from_secs(10);

/// The chains as they were listed last; nothing where no generation is known.
#[derive(Debug, Default)]
pub(super) struct Listed(Option<(u32, Instant, Vec<BaseChain>)>);

impl Listed {
    /// Whether any of the last list is at the hook of an interface, which need not have been there.
    pub(super) fn are_at(&self, ifname: &str) -> bool {
        self.0.iter().any(|(_, _, chains)| chains.iter().any(|chain| chain.is_at(ifname)))
    }

    /// Those of this generation of nf_tables.
    ///
    /// # Errors
    /// The kernel cannot list them.
    pub(super) fn chains(&mut self, generation: Option<u32>) -> Result<Vec<BaseChain>, NetlinkError> {
        if let Self(Some((known, at, chains))) = self
            && Some(*known) == generation
            && at.elapsed() < GOOD
        {
            return Ok(chains.clone());
        }
        let (at, chains) = (Instant::now(), filters::chains()?);
        self.0 = generation.map(|generation| (generation, at, chains.clone()));
        Ok(chains)
    }
}
