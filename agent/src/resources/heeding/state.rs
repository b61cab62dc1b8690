//! What the agent remembers of others' rules.

use std::collections::HashMap;
use std::sync::Arc;

use shunt_agent_api::{FilterMode, FilterReport};
use shunt_netlink::netfilter::BaseChain;

use super::harms::Harms;
use super::listed::Listed;
use super::opening::Opening;
use super::routes::Routes;
use super::tracking::Tracking;
use super::watch::Watcher;
use crate::config::{Config, FilterLease, Filters};
use crate::resources::external_rule::harmless::Reach;

/// Whether others' rules are heeded, and why.
#[derive(Debug)]
pub(crate) struct Heeded {
    pub(super) mode: Filters,
    /// The same of bridges whose networks say so, by ifindex.
    pub(super) modes: HashMap<u32, Filters>,
    /// The edition of the registry that says so, unless a port that is only arriving does, too.
    pub(super) modes_of: Option<u64>,
    /// Whom bridged packets reach, in an edition of the registry.
    pub(super) reached: Option<(u64, Arc<Reach>)>,
    pub(super) lease: FilterLease,
    /// Whether any ports are to be heeded.
    pub(super) is_on: bool,
    /// Whether somebody has rules that may refuse or change something.
    pub(super) is_found: bool,
    /// Whether others have rules for what the node sends by a bridge.
    pub(super) is_node_heeded: bool,
    /// Whether TCP may take the fast path.
    pub(super) tracking: Tracking,
    /// Whether the programs know which way packets take.
    pub(super) routes: Routes,
    /// Who has rules that are heeded, for a person.
    pub(super) by: Vec<String>,
    /// Others' chains.
    pub(super) listed: Listed,
    /// What others' chains do.
    pub(super) harms: Harms,
    /// Who opens host ports.
    pub(crate) opening: Opening,
    /// Which of others' rules keeps flows with the kernel.
    pub(super) kept: Kept,
    /// Hears of changes at once, while ports are heeded.
    pub(super) watcher: Option<Watcher>,
    /// Whether flows that were only bridged may be among those that connection tracking has.
    pub(super) has_been_on: bool,
}

/// Rules that judge each packet.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// The rule that keeps flows with the kernel.
    pub(super) by: Option<String>,
    /// In which generation, and of which chains, that was found.
    pub(super) read: Option<(u32, Vec<BaseChain>)>,
}

impl Heeded {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            mode: config.filters,
            lease: config.filter_lease,
            modes: HashMap::new(),
            modes_of: None,
            reached: None,
            is_on: false,
            is_found: false,
            is_node_heeded: false,
            tracking: Tracking::default(),
            routes: Routes::default(),
            by: Vec::new(),
            listed: Listed::default(),
            harms: Harms::default(),
            opening: Opening { is_asked: config.filter_host_ports, ..Opening::default() },
            kept: Kept::default(),
            watcher: None,
            has_been_on: false,
        }
    }

    /// What a network asks for, or the agent's file where it does not.
    pub(super) fn wanted(&self, by_network: Option<FilterMode>) -> Filters {
        by_network.map_or(self.mode, Filters::from)
    }

    /// Whether others' rules are asked for at a bridge, with a port of a network that asks for `wanted`.
    pub(super) fn mode_of(&self, bridge: u32, wanted: Option<FilterMode>) -> Filters {
        let wanted = self.wanted(wanted);
        self.modes.get(&bridge).map_or(wanted, |known| wanted.max(*known))
    }

    /// The strictest mode of any bridge.
    pub(super) fn strictest(&self) -> Filters {
        self.modes.values().copied().max().unwrap_or(self.mode)
    }

    /// Whether rules are asked for where this is the mode.
    pub(super) fn applies(&self, mode: Filters) -> bool {
        match mode {
            Filters::Bypass => false,
            Filters::Auto => self.is_found,
            Filters::Heed => true,
        }
    }

    /// Whether connection tracking may have seen flows that are none of the kernel's.
    pub(crate) fn has_been_on(&self) -> bool {
        self.has_been_on
    }

    /// Whether what the node sends by a bridge meets them.
    pub(crate) fn is_node_heeded(&self, bridge: u32) -> bool {
        self.is_node_heeded && self.modes.get(&bridge).unwrap_or(&self.mode) != &Filters::Bypass
    }

    /// For `status`; `opens`: whether the kernel opens any host ports.
    pub(crate) fn report(&self, opens: bool) -> FilterReport {
        let by = if self.is_on { self.by.clone() } else { Vec::new() };
        FilterReport {
            mode: self.strictest().to_string(),
            heeded: self.is_on,
            by,
            kept: self.kept.by.clone(),
            opens,
            opens_by: if opens { self.opening.by.clone() } else { Vec::new() },
            masquerades_by: None,
            carries: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Options;

    #[test]
    fn what_the_node_sends_is_asked_for_as_the_networks_of_the_bridge_say() {
        let modes = HashMap::from([(7, Filters::Bypass), (8, Filters::Heed)]);
        for (file, without_networks) in
            [(Filters::Bypass, false), (Filters::Auto, true), (Filters::Heed, true)]
        {
            let flags = Options { filters: Some(file), ..Options::default() };
            let config = Config::resolve(None, flags).unwrap();
            let heeded = Heeded { modes: modes.clone(), is_node_heeded: true, ..Heeded::new(&config) };
            assert_eq!(
                [7, 8, 9].map(|bridge| heeded.is_node_heeded(bridge)),
                [false, true, without_networks]
            );
        }
    }
}
