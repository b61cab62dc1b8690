//! Applies link events: container ends go up and down, links and bridges are deleted.

use std::collections::{BTreeSet, HashMap};
use std::mem::replace;

use shunt_agent_api::EventKind;
use shunt_dataplane::abi::StationKey;
use shunt_dataplane::wire::address::Mac;
use shunt_netlink::LinkEvent;
use shunt_netlink::fdb::FdbEntry;
use shunt_netlink::link::Link;

use crate::datapath::FlowAffinity;
use crate::resources::host_port::abort_connections_to;
use crate::resources::node::Entries;
use crate::resources::{Node, Refusal};

impl Node {
    /// Applies link events.
    pub(crate) fn follow(&mut self, events: &[LinkEvent]) {
        let mut contradicted = BTreeSet::new();
        for event in events {
            let followed = match event {
                LinkEvent::Changed(link) if self.is_contradicted_by(link) => {
                    contradicted.insert(link.index);
                    self.moved(link)
                }
                LinkEvent::Changed(link) => self.changed(link).and_then(|()| self.moved(link)),
                LinkEvent::Gone(link) => self.gone(link.index),
                LinkEvent::Shaped(ifindex) => self.shaped(*ifindex).map(|()| self.look_at(*ifindex)),
                LinkEvent::Addressed(address) => self.addressed(*address).map_err(Refusal::from),
                LinkEvent::Unaddressed(address) => {
                    if self.registry.bridge(address.index).is_some()
                        || self.registry.gateway_by_end(address.index).is_some()
                    {
                        self.repairs.miss(address.index);
                    }
                    self.unaddressed(*address).map_err(Refusal::from)
                }
                LinkEvent::Told(ifindex) => self.port_was_told(*ifindex),
                LinkEvent::Stationed(placement) => self.stationed(placement),
                LinkEvent::Missed => self.resync(),
            };
            if let Err(error) = followed {
                tracing::warn!(?event, %error, "cannot apply a link event");
            }
        }
        for ifindex in contradicted {
            if let Err(error) = self.read_again(ifindex) {
                tracing::warn!(ifindex, %error, "cannot apply a link event");
            }
        }
        self.follow_addresses();
        self.learn_unsure();
    }

    /// Whether an event contradicts the known state of a container's end. The event may be older: a link is
    /// read when it is attached, and earlier events arrive after that. A bridge's event is applied at once:
    /// its last state is needed to recreate it.
    fn is_contradicted_by(&self, link: &Link) -> bool {
        self.registry.by_host(link.index).is_some_and(|attachment| {
            attachment.port.host.name == link.name
                && attachment.peer.seen(link.carrier).is_up() != attachment.peer.is_up()
        })
    }

    fn read_again(&mut self, ifindex: u32) -> Result<(), Refusal> {
        match self.kernel.link(ifindex)? {
            Some(link) => self.changed(&link),
            None => Ok(()),
        }
    }

    fn port_was_told(&mut self, ifindex: u32) -> Result<(), Refusal> {
        if let Some(uplink) = self.registry.uplinks.get(&ifindex).cloned() {
            return Ok(self.apply_port_state(&uplink).map(drop)?);
        }
        if self.registry.bridge(ifindex).is_some() {
            return self.heed_all(ifindex);
        }
        self.heed(ifindex)?;
        if self.repairs.is_in_service(ifindex)
            && let Some(link) = self.kernel.link(ifindex)?
        {
            self.moved(&link)?;
        }
        Ok(())
    }

    /// Records that a bridge has a static FDB entry for a container. From then on a missing entry is
    /// repaired.
    fn stationed(&mut self, placement: &FdbEntry) -> Result<(), Refusal> {
        let &FdbEntry { bridge, port, mac, sticky, .. } = placement;
        let mac = Mac::new(mac);
        let Some(station) = self.datapath.station(&StationKey { bridge, vid: 0, mac })? else {
            return Ok(());
        };
        let is_fixed = self.registry.by_host(port).is_some_and(|it| it.port.restrictions.is_checked());
        // The event may be old: the bridge's current FDB counts.
        if !(sticky && port == station.ifindex && !self.repairs.stationed.contains(&port)) {
            self.look_at(station.ifindex);
        } else if self.kernel.has_station(bridge, port, mac, is_fixed)? {
            self.repairs.stationed.insert(port);
        }
        Ok(())
    }

    fn changed(&mut self, link: &Link) -> Result<(), Refusal> {
        if self.may_be_nat_ingress(link) {
            self.update_nat_ingress();
        }
        self.note_way_in(link);
        if let Some(attachment) = self.registry.by_host_mut(link.index) {
            if attachment.port.host.name != link.name {
                return Ok(());
            }
            if attachment.external.xdp != link.has_peer_with_xdp() {
                self.shaped(link.index)?;
            }
        }
        if let Some(attachment) = self.registry.by_host_mut(link.index) {
            let now = attachment.peer.seen(link.carrier);
            let before = replace(&mut attachment.peer, now);
            if before.is_up() != now.is_up() {
                let attachment = attachment.clone();
                self.datapath.write_station(&attachment)?;
                tracing::debug!(key = %attachment.port.key, up = link.carrier, "the container's end changed");
                let kind = if link.carrier { EventKind::LinkUp } else { EventKind::LinkDown };
                self.events.tell_of(kind, &attachment.port, String::new());
            }
        } else if let Some(bridge) = self.registry.bridge(link.index).cloned()
            && bridge.link != *link
        {
            self.bridge_changed(&bridge, link)?;
        } else if let Some(uplink) = self.registry.uplinks.get(&link.index).cloned() {
            self.uplink_changed(&uplink, link)?;
        } else {
            self.foreign_port_changed(link)?;
        }
        Ok(())
    }

    /// Reattaches a host end to its bridge, if it was a port of it before.
    fn moved(&mut self, link: &Link) -> Result<(), Refusal> {
        let Some(port) = self.registry.by_host(link.index).map(|attachment| &attachment.port) else {
            return Ok(());
        };
        if port.host.name != link.name {
            return Ok(());
        }
        let bridge = port.bridge.index;
        let serves = link.master == Some(bridge);
        if serves {
            self.heed_news(link)?;
        }
        if serves && !self.repairs.is_in_service(link.index) {
            // The event may be older than the attachment, and the port may have been removed since.
            let now = self.kernel.link(link.index)?;
            let Some(now) = now.filter(|now| now.master == Some(bridge)) else { return Ok(()) };
            self.repairs.serves(&now);
        } else if serves {
            self.repairs.serves(link);
        }
        if !serves
            || self.registry.by_host(link.index).is_some_and(|attachment| !attachment.is_served_by(link))
        {
            self.look_at(link.index);
        }
        Ok(())
    }

    /// A change on a host end or a bridge may have removed a program or an entry.
    fn look_at(&mut self, ifindex: u32) {
        if let Some(key) = self.registry.by_host(ifindex).map(|attachment| attachment.port.key.clone()) {
            self.repair_attachment(&key);
        } else if let Some(bridge) = self.registry.bridge(ifindex).cloned() {
            self.reconcile(&bridge);
        }
    }

    /// Packets must not bypass a shaper or a policy that somebody else has attached to a host end.
    fn shaped(&mut self, ifindex: u32) -> Result<(), Refusal> {
        let Some((known, port)) =
            self.registry.by_host(ifindex).map(|attachment| (attachment.external, attachment.port.clone()))
        else {
            return Ok(());
        };
        let mut others = self.kernel.external(ifindex)?;
        if port.bandwidth.ingress.is_some() && !others.queue {
            self.repair_attachment(&port.key);
            others = self.kernel.external(ifindex)?;
        }
        if others != known
            && let Some(attachment) = self.registry.by_host_mut(ifindex)
        {
            attachment.external = others;
            let attachment = attachment.clone();
            // The programs may write the same word concurrently: the value must not look up less than theirs.
            self.datapath.write_port(&attachment, FlowAffinity::Lookup)?;
            tracing::info!(key = %attachment.port.key, ?others, "external filters of the host end changed");
        }
        Ok(())
    }

    /// The event may be old: what counts is whether the index still belongs to the attached link.
    pub(crate) fn gone(&mut self, index: u32) -> Result<(), Refusal> {
        if self.nat_ingress.hooks.contains_key(&index) {
            self.forget_ways_in();
            self.update_nat_ingress();
        }
        let now = self.kernel.link(index)?;
        if now.is_none() && self.unattached.contains_key(&index) {
            self.discard_record_of_unattached(index);
            self.forget_unattached(index);
        }
        if now.is_none() && self.foreign_ports.contains_key(&index) {
            self.forget_foreign_port(index)?;
        }
        let is_still_there = |name: &str| now.as_ref().is_some_and(|link| link.name == name);
        let port = self.registry.by_host(index).map(|attachment| &attachment.port);
        if let Some(port) = port.filter(|port| !is_still_there(&port.host.name)) {
            let key = port.key.clone();
            _ = self.forget(&key, "its link is gone").inspect(abort_connections_to);
        }
        let mut own = None;
        if now.is_none() {
            own = self.return_from_deleted_bridge(index);
            self.uplink_deleted(index);
            self.gateway_deleted(index);
            self.trunks_deleted(index);
        }
        let bridge = self.registry.bridge(index).map(|bridge| bridge.link.clone());
        let bridge = bridge.map(|link| Link { mac: own.map(Mac::octets).or(link.mac), ..link });
        if let Some(bridge) = bridge.filter(|bridge| !is_still_there(&bridge.name)) {
            let detail = format!("{} attachments are without it", self.registry.of_bridge(index).count());
            self.events.tell(EventKind::BridgeLost, &bridge.name, detail);
            let keys: Vec<_> =
                self.registry.of_bridge(index).map(|attachment| attachment.port.key.clone()).collect();
            for key in keys {
                self.orphan(&key, &bridge);
            }
            self.reattach_orphans();
        }
        Ok(())
    }

    /// Events were lost: compares every registered link with its current state.
    fn resync(&mut self) -> Result<(), Refusal> {
        let links: HashMap<_, _> = self.kernel.links()?.into_iter().map(|link| (link.index, link)).collect();
        let hosts = self.registry.attachments().map(|attachment| attachment.port.host.index);
        let bridges = self.registry.bridges().map(|bridge| bridge.link.index);
        let trunks = self.registry.trunks().map(|trunk| trunk.link.index);
        let uplinks = self.registry.uplinks.keys().copied();
        let gateways = self.registry.gateways.values().map(|gateway| gateway.link.index);
        let gateways = gateways.chain(self.unattached.keys().copied());
        let all = hosts.chain(bridges).chain(trunks).chain(uplinks).chain(gateways);
        for index in all.collect::<Vec<_>>() {
            match links.get(&index) {
                Some(link) => {
                    self.changed(link).and_then(|()| self.shaped(index)).and_then(|()| self.heed(index))?;
                }
                None => self.gone(index)?,
            }
        }
        self.find_foreign_ports(&Entries::new())?;
        self.read_addresses()?;
        self.forget_ways_in();
        self.update_nat_ingress();
        tracing::info!(links = links.len(), "link events were lost: compared every link");
        Ok(())
    }
}
