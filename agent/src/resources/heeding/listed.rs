//! Others' chains, listed again once somebody has changed any.

use std::time::{Duration, Instant};

use shunt_netlink::NetlinkError;
use shunt_netlink::netfilter::BaseChain;

use crate::resources::Node;
use crate::resources::external_rule::filters;

/// How long a list is good: chains at an interface go with it, which no generation tells of.
const GOOD: Duration = Duration::from_secs(10);

/// Chains, as they were listed.
#[derive(Debug)]
pub(super) struct Listed {
    /// In this generation of nf_tables.
    generation: u32,
    at: Instant,
    chains: Vec<BaseChain>,
}

impl Node {
    /// Others' chains in this generation of nf_tables.
    ///
    /// # Errors
    /// The kernel cannot list them.
    pub(super) fn others_chains(&mut self, generation: Option<u32>) -> Result<Vec<BaseChain>, NetlinkError> {
        let known = self.heeding.listed.as_ref();
        let known = known.filter(|it| Some(it.generation) == generation && it.at.elapsed() < GOOD);
        if let Some(Listed { chains, .. }) = known {
            return Ok(chains.clone());
        }
        let (at, chains) = (Instant::now(), filters::chains()?);
        self.heeding.listed = generation.map(|generation| Listed { generation, at, chains: chains.clone() });
        Ok(chains)
    }
}
