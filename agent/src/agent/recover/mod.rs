//! Recovers the state of an earlier agent at the start: compares state files, map entries, pins and links, finishes what was begun and
//! removes what is gone. Traffic continues: attached programs are replaced in place, correct entries are not rewritten.

mod found;
mod migrate;
mod place;
mod previous_state;
mod sweep;

use std::time::Instant;

use shunt_agent_api::BridgePort;

use self::found::Found;
pub use self::previous_state::PreviousState;
use super::OpenError;
use crate::resources::Node;
use crate::resources::clock::processor_time;
use crate::resources::node::Swept;
use crate::state::{Loaded, Record, RecordError, Unreadable};

impl Node {
    /// `leases` is the number of freed leases, for the log.
    pub(crate) fn recover(&mut self, loaded: Loaded, leases: usize) -> Result<(), OpenError> {
        let (begun, worked) = (Instant::now(), processor_time());
        let records = self.tell_unplaced(loaded);
        self.read_relocations();
        self.read_claims();
        let mut found = Found::read(self)?;
        self.look_for_external_filters();
        self.find_who_masquerades(&found.entries);
        let mut lost = self.place_all(records, &mut found);
        self.find_others_rules();
        self.keep_guarded(&mut found, &mut lost)?;
        let lost = self.drop_lost(lost, &mut found);
        self.sweep_gateways(&found.entries, &found.links, &lost);
        let is_upgrade = self.migrate()?;
        if is_upgrade {
            found.entries = self.port_entries()?;
            self.keep_guarded(&mut found, &mut Vec::new())?;
        }
        for reason in self.unattached_reasons() {
            tracing::error!("{reason}");
        }
        self.sweep(&found.entries, &found.links, Swept::AtStart);
        self.take_over_all(&found, is_upgrade);
        let repaired = self.repairs.unsure.len();
        self.learn_unsure();
        self.note_all_former();
        self.follow_the_node(&found)?;
        self.return_unneeded_sizes();
        let (adopted, lost) = (self.registry.len(), lost.len());
        let worked = processor_time().saturating_sub(worked);
        tracing::info!(adopted, lost, repaired, leases, processor = ?worked, took = ?begun.elapsed(), "recovered");
        Ok(())
    }

    /// Tells of state files that cannot be read, or are of an earlier boot; answers the others.
    fn tell_unplaced(&mut self, loaded: Loaded) -> Vec<Record> {
        for unreadable in loaded.unreadable {
            tracing::error!(path = %unreadable.path.display(), reason = %unreadable.reason, "a state file is unreadable");
            self.unreadable.push(unreadable);
        }
        for port in &loaded.outlived {
            tracing::info!(key = %port.key, "attachment dropped: the machine was rebooted");
        }
        loaded.records
    }

    /// Registers every record whose links are there; answers the ports of the others, and why. A container that has only lost its
    /// bridge waits for it.
    fn place_all(&mut self, records: Vec<Record>, found: &mut Found) -> Vec<(BridgePort, String)> {
        let mut lost = Vec::new();
        for Record { port, .. } in records {
            let Err(why) = self.place(&port, found) else { continue };
            if found.has_lost_its_bridge(&port) {
                if port.vlan.is_none() {
                    self.orphan_of(port);
                    continue;
                }
                self.delete_orphaned_interface(port.clone());
            }
            lost.push((port, why));
        }
        self.note_parents();
        lost
    }

    /// Finds ports that run programs and are no attachment's. Their records stay, if they have any.
    fn keep_guarded(
        &mut self,
        found: &mut Found,
        lost: &mut Vec<(BridgePort, String)>,
    ) -> Result<(), OpenError> {
        self.find_unattached(&found.entries, &found.links, &mut found.previous_slots)?;
        let is_unattached =
            |(port, _): &mut (BridgePort, String)| self.unattached.contains_key(&port.host.index);
        let kept: Vec<_> = lost.extract_if(.., is_unattached).collect();
        for (port, why) in kept {
            let (path, reason) = (self.store.path(&port.key), RecordError::Unplaced(why));
            self.unreadable.push(Unreadable { path, reason });
        }
        Ok(())
    }

    /// Removes the files of ports whose links are gone, and gives back the counters that nobody has taken.
    fn drop_lost(&mut self, lost: Vec<(BridgePort, String)>, found: &mut Found) -> Vec<BridgePort> {
        for (port, _) in &lost {
            if let Some(slot) = found.previous_slots.get(&port.host.index) {
                self.keep_carried(port, *slot);
            }
        }
        for slot in std::mem::take(&mut found.previous_slots).into_values() {
            self.registry.slots.give_back(slot);
        }
        for (port, why) in &lost {
            tracing::info!(key = %port.key, %why, "attachment dropped");
            if let Err(error) = self.store.remove(&port.key) {
                self.warn(format!("cannot remove the state file of {}: {error}", port.key));
            }
        }
        lost.into_iter().map(|(port, _)| port).collect()
    }

    /// Takes over entries and programs of all that is registered. After an upgrade, every port learns: see [`Self::migrate`].
    fn take_over_all(&mut self, found: &Found, is_upgrade: bool) {
        for desired in [Self::desired_bridges, Self::desired_ports, Self::desired_links] {
            desired(self).iter().for_each(|resource| self.take_over(&**resource, &found.entries));
        }
        if is_upgrade {
            let hosts = self.registry.attachments().map(|attachment| attachment.port.host.index);
            self.repairs.unsure.extend(hosts);
        }
        self.detach_unused_translation();
        self.return_relocations();
    }

    /// Follows what nobody has told the agent while there was none: others' ports, the node's addresses, its sockets and rules.
    fn follow_the_node(&mut self, found: &Found) -> Result<(), OpenError> {
        if let Err(error) = self.find_foreign_ports(&found.entries) {
            self.warnings.push(format!("cannot list the bridges' foreign ports: {error}"));
        }
        self.read_addresses()?;
        self.update_nat_ingress();
        self.reconnect_stale_sockets(&[]);
        self.sweep_flows_soon();
        self.sweep_nat_ingress();
        self.datapath.remove_older();
        self.sweep_guarantees();
        self.update_guarantees();
        if let Err(error) = self.set_rules() {
            self.warn(format!("cannot set the nf_tables rules: {error}"));
        }
        Ok(())
    }
}
