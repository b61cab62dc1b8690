//! Rule sets that let everything pass: nobody heeds them unless told to.

use std::sync::Arc;

use shunt_agent_api::BridgePort;
use shunt_netlink::netfilter::BaseChain;

use crate::resources::Node;
use crate::resources::external_rule::harmless::{Bridges, Reach};
use crate::resources::external_rule::hooks::{self, Bypassed, Crossed};

/// Chains that may refuse or change something.
#[derive(Debug, Default)]
pub(crate) struct Harmful {
    /// Of what containers of one bridge say to each other.
    pub(super) bridged: Vec<BaseChain>,
    /// Of what the node sends or routes to them.
    from_node: Vec<BaseChain>,
}

impl Harmful {
    /// Who of them is bypassed.
    pub(crate) fn bypassed(&self, crossed: &Crossed) -> Bypassed {
        let Bypassed { from_node, .. } = hooks::bypassed_of(&self.from_node, crossed);
        Bypassed { from_node, ..hooks::bypassed_of(&self.bridged, crossed) }
    }
}

impl Node {
    /// Those of these chains that may refuse or change something of what containers of one bridge, or the node and they, say to each other.
    pub(super) fn harmful(
        &mut self,
        generation: Option<u32>,
        chains: Vec<BaseChain>,
        (crossed, arriving): (&Crossed, Option<&BridgePort>),
    ) -> Harmful {
        let (met, others) = hooks::met_on_bridges(chains, crossed);
        let bridges = self.registry.bridges().map(|bridge| (bridge.link.index, bridge.link.name.clone()));
        let of_arriving = arriving.map(|port| (port.bridge.index, port.bridge.name.clone()));
        let bridges = Bridges::of(bridges.chain(of_arriving));
        self.heeding.harms.read(generation, &met.iter().collect::<Vec<_>>(), &bridges);
        let reach = self.reach_known(arriving);
        let harms = &self.heeding.harms;
        let bridged = harms.met_in(&reach).into_iter().chain(others.iter().cloned()).collect();
        Harmful { bridged, from_node: harms.met_from_node_in(&reach).into_iter().chain(others).collect() }
    }

    /// Those of these chains that are not known to refuse and change nothing of theirs.
    pub(crate) fn without_harmless(&self, chains: &[BaseChain]) -> Harmful {
        let harms = &self.heeding.harms;
        let reach = if harms.of.is_empty() { Reach::default() } else { self.reach(None) };
        let is_known = |chain: &BaseChain| harms.of.iter().any(|(known, _)| known == chain);
        let without = |met: Vec<BaseChain>| -> Vec<BaseChain> {
            chains.iter().filter(|chain| !is_known(chain) || met.contains(chain)).cloned().collect()
        };
        Harmful { bridged: without(harms.met_in(&reach)), from_node: without(harms.met_from_node_in(&reach)) }
    }

    /// Whom bridged packets reach, as far as anybody's rules ask. Without a port that arrives it is found out once in each edition of the registry.
    fn reach_known(&mut self, arriving: Option<&BridgePort>) -> Arc<Reach> {
        let edition = self.registry.edition();
        match &self.heeding.reached {
            _ if self.heeding.harms.of.is_empty() => Arc::default(),
            Some((known, reach)) if arriving.is_none() && *known == edition => Arc::clone(reach),
            _ => {
                let reach = Arc::new(self.reach(arriving));
                self.heeding.reached = arriving.is_none().then(|| (edition, Arc::clone(&reach)));
                reach
            }
        }
    }

    /// Whom bridged packets reach.
    fn reach(&self, arriving: Option<&BridgePort>) -> Reach {
        Reach::of(self.registry.attachments().map(|attachment| &attachment.port).chain(arriving))
    }

    /// Whom they reach on a port's bridge once it is there.
    pub(super) fn reach_beside(&self, arriving: &BridgePort) -> Reach {
        let there = self.registry.of_bridge(arriving.bridge.index).map(|attachment| &attachment.port);
        Reach::of(there.filter(|port| port.key != arriving.key).chain([arriving]))
    }
}
