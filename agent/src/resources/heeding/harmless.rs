//! Rule sets that let everything pass: nobody heeds them unless told to.

use shunt_agent_api::BridgePort;
use shunt_netlink::netfilter::BaseChain;

use crate::resources::Node;
use crate::resources::external_rule::harmless::Reach;
use crate::resources::external_rule::hooks::{self, Crossed};

impl Node {
    /// Those of these chains that may refuse or change something of what containers of one bridge, or the node and they, say to each other.
    pub(super) fn harmful(
        &mut self,
        generation: Option<u32>,
        chains: Vec<BaseChain>,
        (crossed, arriving): (&Crossed, Option<&BridgePort>),
    ) -> Vec<BaseChain> {
        let (met, others) = hooks::met_on_bridges(chains, crossed);
        self.heeding.harms.read(generation, &met.iter().collect::<Vec<_>>());
        self.heeding.harms.met_in(&self.reach(arriving)).into_iter().chain(others).collect()
    }

    /// Those of these chains that are not known to refuse and change nothing of theirs.
    pub(crate) fn without_harmless(&self, mut chains: Vec<BaseChain>) -> Vec<BaseChain> {
        let met = self.heeding.harms.met_in(&self.reach(None));
        let is_known = |chain: &BaseChain| self.heeding.harms.of.iter().any(|(known, _)| known == chain);
        let is_harmless = |chain: &BaseChain| is_known(chain) && !met.contains(chain);
        chains.retain(|chain| !is_harmless(chain));
        chains
    }

    /// Whom bridged packets reach.
    fn reach(&self, arriving: Option<&BridgePort>) -> Reach {
        Reach::of(self.registry.attachments().map(|attachment| &attachment.port).chain(arriving))
    }
}
