//! Recovers the state of an earlier agent at the start: compares state files, map entries, pins and links, finishes what was begun and
//! removes what is gone. Traffic continues: attached programs are replaced in place, correct entries are not rewritten.

mod migrate;
mod previous_state;
mod sweep;

use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use shunt_agent_api::{BridgePort, Interface};

pub use self::previous_state::PreviousState;
use super::OpenError;
use crate::capacity::Demand;
use crate::registry::{Attachment, Bridge, External, PeerEnd, Trunk};
use crate::requests::admission;
use crate::resources::Node;
use crate::resources::node::{Links, PreviousSlots};
use crate::state::Loaded;

impl Node {
    /// `leases` is the number of freed leases, for the log.
    pub(crate) fn recover(&mut self, loaded: Loaded, leases: usize) -> Result<(), OpenError> {
        let (begun, worked) = (Instant::now(), processor_time());
        for aside in loaded.aside {
            tracing::warn!(path = %aside.path.display(), reason = %aside.reason, "a state file was set aside");
            self.aside.push(aside.path);
        }
        for port in &loaded.outlived {
            tracing::info!(key = %port.key, "attachment dropped: the machine was rebooted");
        }
        self.read_relocations();
        let links: Links = self.kernel.links()?.into_iter().map(|link| (link.index, link)).collect();
        let entries = self.port_entries()?;
        let mut previous_slots: PreviousSlots = entries
            .iter()
            .filter(|(_, entry)| self.registry.slots.claim(entry.slot))
            .map(|(ifindex, entry)| (*ifindex, entry.slot))
            .collect();
        self.look_for_external_filters();
        let mut lost = Vec::new();
        for record in loaded.records {
            if let Err(why) = self.place(&record.port, &links, &mut previous_slots) {
                if has_lost_its_bridge(&record.port, &links) {
                    if record.port.vlan.is_none() {
                        self.orphan_of(record.port);
                        continue;
                    }
                    self.delete_orphaned_interface(record.port.clone());
                }
                tracing::info!(key = %record.port.key, %why, "attachment dropped");
                lost.push(record.port);
            }
        }
        self.note_parents();
        for slot in previous_slots.into_values() {
            self.registry.slots.give_back(slot);
        }
        for port in &lost {
            if let Err(error) = self.store.remove(&port.key) {
                self.warn(format!("cannot remove the state file of {}: {error}", port.key));
            }
        }
        self.sweep_gateways(&entries, &links, &lost);
        let is_upgrade = self.migrate()?;
        let entries = if is_upgrade { self.port_entries()? } else { entries };
        self.sweep(&entries, &links);
        for desired in [Self::desired_bridges, Self::desired_ports, Self::desired_links] {
            desired(self).iter().for_each(|resource| self.take_over(&**resource, &entries));
        }
        if is_upgrade {
            let hosts = self.registry.attachments().map(|attachment| attachment.port.host.index);
            self.repairs.unsure.extend(hosts);
        }
        self.return_relocations();
        let repaired = self.repairs.unsure.len();
        self.learn_unsure();
        if let Err(error) = self.find_foreign_ports(&entries) {
            self.warnings.push(format!("cannot list the bridges' foreign ports: {error}"));
        }
        self.read_addresses()?;
        self.update_nat_ingress();
        self.abort_stale_sockets(&[]);
        self.sweep_flows_soon();
        self.sweep_nat_ingress();
        self.datapath.remove_older();
        if let Err(error) = self.set_rules() {
            tracing::warn!(%error, "cannot set the nf_tables rules");
            self.warnings.push(format!("cannot set the nf_tables rules: {error}"));
        }
        let (adopted, lost) = (self.registry.len(), lost.len());
        let worked = processor_time().saturating_sub(worked);
        tracing::info!(adopted, lost, repaired, leases, processor = ?worked, took = ?begun.elapsed(), "recovered");
        Ok(())
    }

    /// Registers a record's attachment and bridge, if both links still have their index and name.
    fn place(
        &mut self,
        port: &BridgePort,
        links: &Links,
        previous_slots: &mut PreviousSlots,
    ) -> Result<(), String> {
        let mac = admission::port(port).map_err(|refusal| refusal.to_string())?;
        let find = |interface: &Interface| {
            let link = links.get(&interface.index).filter(|link| link.name == interface.name);
            link.ok_or_else(|| format!("the link {} is gone", interface.name))
        };
        let (host, bridge) = (find(&port.host)?, find(&port.bridge)?);
        if let Some(other) = self.registry.by_host(host.index) {
            return Err(format!("{} is {}'s", host.name, other.port.key));
        }
        // The previous slot, so that counters continue.
        let mut slot = |node: &mut Self, ifindex| match previous_slots.remove(&ifindex) {
            Some(slot) => Ok(slot),
            None => node.take_slot_uncleared(),
        };
        if let Some(trunk) = Trunk::of(port) {
            self.registry.insert_trunk(trunk);
        } else if self.registry.bridge(bridge.index).is_none() {
            let slot = slot(self, bridge.index)?;
            self.registry.insert_bridge(Bridge { link: bridge.clone(), slot });
        }
        let (slot, peer) = (slot(self, host.index)?, PeerEnd::new(host.carrier, false));
        if let Err(error) = self.kernel.limit(port) {
            tracing::warn!(key = %port.key, %error, "cannot apply the limit");
            self.warnings.push(format!("{} is not limited: {error}", port.key));
        }
        self.place_uplink(port, links, previous_slots);
        self.place_gateway(port, links, previous_slots);
        if host.master == Some(bridge.index) {
            self.repairs.serves(host);
        }
        // A failed query is no reason to drop the attachment: assume external filters, so that no packet
        // bypasses them.
        let external = self.kernel.external(host.index).unwrap_or_else(|error| {
            self.warn(format!("cannot list external filters on {}: {error}", host.name));
            External { filters: true, queue: true }
        });
        self.ledger.allocate(&port.key, Demand::from(&port.bandwidth));
        let (port, is_parent, lent) = (port.clone(), false, Vec::new());
        self.registry.insert(Attachment {
            port,
            mac,
            slot,
            peer,
            external,
            abandoned: false,
            is_parent,
            lent,
        });
        Ok(())
    }
}

/// Whether the host end exists and the bridge does not.
fn has_lost_its_bridge(port: &BridgePort, links: &Links) -> bool {
    let is_there =
        |interface: &Interface| links.get(&interface.index).is_some_and(|link| link.name == interface.name);
    is_there(&port.host) && !is_there(&port.bridge)
}

/// Processor time of this thread.
fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from).unwrap_or_default()
}
