//! Decides each second whether others' rules are heeded, and has the ports follow.

use std::collections::{HashMap, HashSet};

use shunt_agent_api::BridgePort;
use shunt_netlink::netfilter::BaseChain;
use shunt_netlink::nf_tables::generation;

use super::harms::Harms;
use super::tracking::Tracking;
use super::watch::{self, Watcher};
use crate::config::Filters;
use crate::datapath::{FlowAffinity, in_map};
use crate::kernel::KernelError;
use crate::registry::{Attachment, Bridge};
use crate::resources::Node;
use crate::resources::external_rule::hooks::{self, Bypassed, Crossed};

impl Node {
    /// Looks at others' rules once the ports of an earlier agent are registered, and before any is written. That agent may have heeded them.
    pub(crate) fn find_others_rules(&mut self) {
        self.heeding.has_been_on =
            !self.datapath.maps.heeding.read().is_ok_and(|known| known.generation == 0);
        self.look_at_others_rules(None);
        let ports: Vec<Attachment> = self.registry.attachments().cloned().collect();
        for attachment in ports {
            let heeded = self.heeds(&attachment.port);
            self.registry.insert(Attachment { heeded, ..attachment });
        }
        self.find_who_opens();
        let bridges: Vec<Bridge> = self.registry.bridges().cloned().collect();
        for bridge in bridges {
            let heeded = self.heeding.is_node_heeded(bridge.link.index);
            self.registry.insert_bridge(Bridge { heeded, ..bridge });
        }
    }

    /// Looks at others' rules and at connection tracking's settings, and changes what follows from them.
    pub(crate) fn follow_others_rules(&mut self) {
        self.follow_others_rules_with(None);
    }

    /// The same before a port arrives, if rules are heeded because of it.
    pub(crate) fn heed_before(&mut self, arriving: &BridgePort) {
        let bridge = arriving.bridge.index;
        let mode = self.heeding.mode_of(bridge, arriving.service.filters);
        let is_stricter = arriving.is_bridged() && self.heeding.modes.get(&bridge) != Some(&mode);
        let is_met = || {
            mode == Filters::Auto
                && !self.heeding.is_found
                && !self.heeding.harms.of.is_empty()
                && self.heeding.harms.are_met_in(&self.reach_beside(arriving))
        };
        let is_published = self.heeding.opening.is_asked && !arriving.mappings.is_empty()
            || self.asks_for_masqueraded(arriving);
        let uplink = arriving.service.uplink.as_ref().map(|uplink| &uplink.name);
        let is_at_its_end = || {
            let mut names = uplink.into_iter().chain([&arriving.host.name]);
            mode != Filters::Bypass && names.any(|name| self.heeding.listed.are_at(name))
        };
        if is_stricter || is_published || is_met() || is_at_its_end() {
            self.follow_others_rules_with(Some(arriving));
        }
    }

    fn follow_others_rules_with(&mut self, arriving: Option<&BridgePort>) {
        self.look_at_others_rules(arriving);
        if let Err(error) = self.change_what_is_heeded() {
            tracing::warn!(%error, "cannot switch between heeding and bypassing others' rules");
        }
    }

    fn look_at_others_rules(&mut self, arriving: Option<&BridgePort>) {
        self.find_modes(arriving);
        if self.heeding.strictest() == Filters::Bypass {
            (self.heeding.is_found, self.heeding.harms) = (false, Harms::default());
            self.heeding.opening.forget();
            return self.decide_to_heed(false, false);
        }
        // Asked first: what is changed meanwhile is looked at again.
        let generation = generation();
        let met = self.heeding.listed.chains(generation).and_then(|chains| {
            let crossed = self.crossed(arriving, &chains)?;
            let translated = self.find_rules_for_translated(generation, &chains, &crossed);
            let bridged = self.find_whose(generation, chains, (&crossed, arriving));
            Ok(self.asked_for_each_packet(bridged, translated, arriving))
        });
        if let Err(error) = &met {
            // Whoever cannot be asked may have rules.
            tracing::debug!(%error, "cannot list others' rules: they are heeded");
            (self.heeding.is_found, self.heeding.by) = (true, vec!["whoever cannot be asked".to_owned()]);
            self.heeding.opening.by = self.heeding.by.clone();
            self.decide_to_heed(true, true);
        }
        if self.is_asking() {
            self.find_who_keeps_flows(generation, met);
            self.find_how_tcp_is_tracked();
            self.heeding.routes.look();
        }
    }

    /// Whether others' rules are asked about any packets: bridged ones, or those that the kernel translates.
    fn is_asking(&self) -> bool {
        self.heeding.is_on || self.opens_host_ports() || self.asks_for_any_masqueraded()
    }

    /// The chains that may judge each packet of a flow: those that bridged packets meet, and those that translated packets do, each if they are asked, or will be
    /// after this look.
    fn asked_for_each_packet(
        &self,
        bridged: Vec<BaseChain>,
        translated: Vec<BaseChain>,
        arriving: Option<&BridgePort>,
    ) -> Vec<BaseChain> {
        let mut asked = if self.heeding.is_on { bridged } else { Vec::new() };
        let mut ports = self.registry.attachments().map(|attachment| &attachment.port).chain(arriving);
        let is_asked = |port: &BridgePort| self.heeds_host_ports(port) || self.asks_for_masqueraded(port);
        let may_open = self.registry.has_mapped() || self.registry.has_masqueraded() || arriving.is_some();
        let opens = self.opens_host_ports() || may_open && ports.any(is_asked);
        let translated = if opens { translated } else { Vec::new() };
        let others: Vec<_> = translated.into_iter().filter(|chain| !asked.contains(chain)).collect();
        asked.extend(others);
        asked
    }

    /// Decides by `chains`, and says which of them bridged packets meet.
    fn find_whose(
        &mut self,
        generation: Option<u32>,
        chains: Vec<BaseChain>,
        (crossed, arriving): (&Crossed, Option<&BridgePort>),
    ) -> Vec<BaseChain> {
        let strictest = self.heeding.strictest();
        let harmful = self.harmful(generation, chains.clone(), (crossed, arriving));
        let Bypassed { bridged, from_node, .. } = harmful.bypassed(crossed);
        (self.heeding.is_found, self.heeding.by) = (!bridged.is_empty(), bridged);
        self.decide_to_heed(self.heeding.applies(strictest), !from_node.is_empty());
        hooks::met_by_bridged(if strictest == Filters::Heed { chains } else { harmful.bridged }, crossed)
    }

    /// Of several networks of one bridge the strictest counts. Nothing is looked at again while nobody asks for something else.
    fn find_modes(&mut self, arriving: Option<&BridgePort>) {
        let edition = Some(self.registry.edition()).filter(|_| arriving.is_none());
        if edition.is_some() && self.heeding.modes_of == edition {
            return;
        }
        self.heeding.modes_of = edition;
        let mut modes = HashMap::new();
        let ports = self.registry.attachments().map(|attachment| &attachment.port).chain(arriving);
        for port in ports.filter(|port| port.is_bridged()) {
            let wanted = self.heeding.wanted(port.service.filters);
            let known = modes.entry(port.bridge.index).or_insert(wanted);
            *known = wanted.max(*known);
        }
        self.heeding.modes = modes;
    }

    fn decide_to_heed(&mut self, is_on: bool, is_node_heeded: bool) {
        if self.heeding.is_on != is_on {
            tracing::info!(
                heeded = is_on,
                "whether others' rules for bridged packets are heeded has changed"
            );
        }
        (self.heeding.is_on, self.heeding.is_node_heeded) = (is_on, is_node_heeded);
        self.heeding.has_been_on |= is_on;
        self.keep_watch();
    }

    fn find_how_tcp_is_tracked(&mut self) {
        let can_be_told = || self.heeding.watcher.is_some() && watch::can_be_told();
        let tracking = Tracking::now(can_be_told);
        if self.heeding.tracking != tracking {
            tracing::info!(?tracking, "how connection tracking is liberal of TCP has changed");
        }
        self.heeding.tracking = tracking;
    }

    /// Has somebody hear of changes while others' rules are heeded.
    fn keep_watch(&mut self) {
        let is_asking = self.is_asking();
        self.heeding.watcher = self.heeding.watcher.take().filter(|it| is_asking && it.is_running());
        if !is_asking || self.heeding.watcher.is_some() {
            return;
        }
        match Watcher::start(&self.datapath.pins(), self.datapath.maps.heeding.clone()) {
            Ok(watcher) => self.heeding.watcher = Some(watcher),
            Err(error) => {
                tracing::debug!(%error, "changes of others' rules are heeded within the lease only");
            }
        }
    }

    fn change_what_is_heeded(&mut self) -> Result<(), KernelError> {
        if self.is_asking() {
            let (lease, flags) = match &self.heeding.kept.by {
                Some(_) => (0, 0),
                None => {
                    let flags = self.heeding.tracking.flags() | self.heeding.routes.flags();
                    (self.heeding.lease.nanoseconds(), flags)
                }
            };
            self.datapath.maps.heeding.write(lease, flags).map_err(in_map("HEEDING"))?;
        }
        self.change_heeded_bridges()?;
        self.change_heeded_ports()?;
        self.change_who_opens()?;
        self.change_who_is_carried()?;
        if !self.is_asking() {
            self.datapath.maps.heeding.write(0, 0).map_err(in_map("HEEDING"))?;
        }
        Ok(())
    }

    fn change_heeded_bridges(&mut self) -> Result<(), KernelError> {
        let is_other = |it: &&Bridge| it.heeded != self.heeding.is_node_heeded(it.link.index);
        let others: Vec<Bridge> = self.registry.bridges().filter(is_other).cloned().collect();
        for bridge in others {
            let bridge = Bridge { heeded: !bridge.heeded, ..bridge };
            self.datapath.write_bridge(&bridge)?;
            self.registry.insert_bridge(bridge);
        }
        Ok(())
    }

    /// Flows of a port that is heeded no longer may have been translated on the kernel's way: they are learned before others are fast.
    fn change_heeded_ports(&mut self) -> Result<(), KernelError> {
        // Then no mode applies anywhere.
        if !self.heeding.is_on && !self.registry.has_heeded() {
            return Ok(());
        }
        let is_other = |it: &&Attachment| it.heeded != self.heeds(&it.port);
        let others: Vec<Attachment> = self.registry.attachments().filter(is_other).cloned().collect();
        let mut unsure = HashSet::new();
        for from in others {
            let to = Attachment { heeded: !from.heeded, ..from };
            let host = to.port.host.index;
            if !to.heeded {
                self.datapath.write_affinity(host, FlowAffinity::Learn)?;
                unsure.insert(host);
            }
            self.datapath.rewrite_port(&to)?;
            self.registry.insert(to);
        }
        if !unsure.is_empty() {
            self.learn(&unsure);
        }
        Ok(())
    }
}
