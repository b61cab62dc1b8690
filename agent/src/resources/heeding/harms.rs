//! What others' chains do, as it was read.

use shunt_netlink::netfilter::BaseChain;

use crate::resources::external_rule::harmless::{Harm, Reach, harm_of};

/// Chains with what they do.
#[derive(Debug, Default)]
pub(super) struct Harms {
    /// In which generation of nf_tables.
    generation: Option<u32>,
    /// Each chain with what it does.
    pub(super) of: Vec<(BaseChain, Harm)>,
}

impl Harms {
    /// Reads these chains, unless nobody has changed any since. Whoever cannot be asked may do anything.
    pub(super) fn read(&mut self, generation: Option<u32>, chains: &[&BaseChain]) {
        let is_known = self.of.iter().map(|(chain, _)| chain).eq(chains.iter().copied());
        if generation.is_some() && self.generation == generation && is_known {
            return;
        }
        let harm = |chain: &BaseChain| {
            harm_of(chain).unwrap_or_else(|error| {
                tracing::debug!(%error, chain.name, chain.table, "others' rules cannot be read");
                Harm::unknown()
            })
        };
        self.of = chains.iter().map(|chain| ((*chain).clone(), harm(chain))).collect();
        self.generation = generation;
    }

    /// Those that are met by packets to these. Where there are any, these may mark packets for others.
    pub(super) fn met_in(&self, reach: &Reach) -> Vec<BaseChain> {
        let are_marked = self.are_met_in(reach);
        let met =
            self.of.iter().filter(|(_, harm)| harm.is_met_in(reach) || are_marked && harm.is_for_marked());
        met.map(|(chain, _)| chain.clone()).collect()
    }

    /// Whether any of them is met by packets to these.
    pub(super) fn are_met_in(&self, reach: &Reach) -> bool {
        self.of.iter().any(|(_, harm)| harm.is_met_in(reach))
    }
}
