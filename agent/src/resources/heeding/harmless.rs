//! Rule sets that let everything pass: nobody heeds them unless told to.

use std::net::IpAddr;

use shunt_netlink::netfilter::BaseChain;

use crate::resources::Node;
use crate::resources::external_rule::harmless::Harm;
use crate::resources::external_rule::hooks::Crossed;

/// What others' chains do, as it was read.
#[derive(Debug, Default)]
pub(super) struct Harms {
    /// In which generation of nf_tables.
    generation: Option<u32>,
    /// Each chain with what it does.
    of: Vec<(BaseChain, Harm)>,
}

impl Harms {
    /// Reads these chains, unless nobody has changed any since. Whoever cannot be asked may do anything.
    fn read(&mut self, generation: Option<u32>, chains: &[&BaseChain]) {
        let is_known = self.of.iter().map(|(chain, _)| chain).eq(chains.iter().copied());
        if generation.is_some() && self.generation == generation && is_known {
            return;
        }
        let harm = |chain: &BaseChain| {
            Harm::of(chain).unwrap_or_else(|error| {
                tracing::debug!(%error, chain.name, chain.table, "others' rules cannot be read");
                Harm::unknown()
            })
        };
        self.of = chains.iter().map(|chain| ((*chain).clone(), harm(chain))).collect();
        self.generation = generation;
    }
}

impl Node {
    /// Those of these chains that may refuse or change something of what containers of one bridge, or the node and they, say to each other.
    pub(super) fn harmful(
        &mut self,
        generation: Option<u32>,
        chains: Vec<BaseChain>,
        crossed: &Crossed,
    ) -> Vec<BaseChain> {
        let (met, others): (Vec<BaseChain>, Vec<BaseChain>) =
            chains.into_iter().partition(|chain| crossed.is_met_on_a_bridge(chain));
        self.heeding.harms.read(generation, &met.iter().collect::<Vec<_>>());
        let addresses =
            || self.registry.attachments().flat_map(|attachment| attachment.port.ips.iter().copied());
        let harmful = self.heeding.harms.of.iter().filter(|(_, harm)| harm.is_met_by(addresses()));
        harmful.map(|(chain, _)| chain.clone()).chain(others).collect()
    }

    /// Whether a chain is known to refuse and change nothing of theirs.
    pub(crate) fn is_harmless(&self, chain: &BaseChain) -> bool {
        let known = self.heeding.harms.of.iter().find(|(known, _)| known == chain);
        known.is_some_and(|(_, harm)| !harm.is_met_by(self.addresses()))
    }

    /// The containers' addresses.
    fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.registry.attachments().flat_map(|attachment| attachment.port.ips.iter().copied())
    }
}
