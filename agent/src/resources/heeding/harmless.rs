//! Rule sets that let everything pass: nobody heeds them unless told to.

use std::net::IpAddr;

use shunt_agent_api::BridgePort;
use shunt_netlink::netfilter::BaseChain;

use crate::resources::Node;
use crate::resources::external_rule::hooks::Crossed;

impl Node {
    /// Those of these chains that may refuse or change something of what containers of one bridge, or the node and they, say to each other.
    pub(super) fn harmful(
        &mut self,
        generation: Option<u32>,
        chains: Vec<BaseChain>,
        (crossed, arriving): (&Crossed, Option<&BridgePort>),
    ) -> Vec<BaseChain> {
        let (met, others): (Vec<BaseChain>, Vec<BaseChain>) =
            chains.into_iter().partition(|chain| crossed.is_met_on_a_bridge(chain));
        self.heeding.harms.read(generation, &met.iter().collect::<Vec<_>>());
        let coming = || arriving.into_iter().flat_map(|port| port.ips.iter().copied());
        let harms = self.heeding.harms.of.iter();
        let harmful = harms.filter(|(_, harm)| harm.is_met_by(self.addresses().chain(coming())));
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
