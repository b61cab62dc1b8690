//! Rules that leave the container's own address to what goes to some destinations. They stand before those that masquerade.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use nix::libc;

use super::expression::{Comparison, Expressions, Side};
use super::interval_set::IntervalSet;

/// What goes from a prefix, or one address, to these destinations of the same family keeps its address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnmasqueradedRule {
    /// The network's name, which `nft list ruleset` shows beside the rule.
    pub network: String,
    /// The containers' addresses.
    pub source: IpNet,
    /// Where it goes; rules with the same destinations share one set.
    pub destinations: BTreeSet<IpNet>,
}

impl UnmasqueradedRule {
    pub(super) fn steps(&self, set: &IntervalSet) -> Expressions {
        let is_v4 = self.source.addr().is_ipv4();
        let family = if is_v4 { libc::NFPROTO_IPV4 } else { libc::NFPROTO_IPV6 };
        Expressions::default()
            .family(family as u8)
            .address(Side::Source, Comparison::Is, &self.source)
            .address_in(Side::Destination, is_v4, &set.name)
            .accept()
    }
}

/// The sets that some rules need, by their destinations.
pub(super) fn sets(rules: &BTreeSet<UnmasqueradedRule>) -> BTreeMap<&BTreeSet<IpNet>, IntervalSet> {
    let distinct: BTreeSet<_> = rules.iter().map(|rule| &rule.destinations).collect();
    let set = |(destinations, id): (&BTreeSet<IpNet>, u32)| IntervalSet {
        name: format!("unmasqueraded-{id}"),
        id,
        prefixes: destinations.iter().copied().collect(),
    };
    distinct.into_iter().zip(1..).map(|(destinations, id)| (destinations, set((destinations, id)))).collect()
}
