//! Ports that run the agent's programs and are no attachment's: they stay guarded as they are.
//!
//! A record may be torn, refused by the disk, or a newer agent's; the state directory may be gone; a container may have lost its bridge.
//! What such a port is to be held to is not known then, or cannot be put in force yet, but its programs still hold it to what they were
//! told. A port without its programs would be open. So programs, entries and counters stay until its ADD takes them over, its DEL deletes
//! the link, or the link ends otherwise; meanwhile the agent is not healthy.

mod state;

use std::collections::BTreeSet;
use std::path::PathBuf;

use shunt_agent_api::{AttachmentKey, Interface};
use shunt_dataplane::abi::{PORT_FOREIGN, PORT_WIRE};

pub(crate) use self::state::UnattachedPorts;

use self::state::{Unattached, owner};
use crate::datapath::attach::hook::{Hook, Program};
use crate::datapath::{DatapathError, programs};
use crate::kernel::KernelError;
use crate::registry::{Attachment, vlan_gateway};
use crate::resources::Node;
use crate::resources::node::{Entries, Links, PreviousSlots, Swept};

impl Node {
    /// Finds the ports of an earlier agent that have no record, and keeps their slots.
    ///
    /// # Errors
    /// The pins cannot be listed, or the kernel cannot say which programs run.
    pub(crate) fn find_unattached(
        &mut self,
        entries: &Entries,
        links: &Links,
        slots: &mut PreviousSlots,
    ) -> Result<(), KernelError> {
        let pinned = self.datapath.pinned()?.into_iter();
        let pinned =
            pinned.filter(|pin| Program::OF_CONTAINERS.contains(&pin.program)).map(|pin| pin.ifindex);
        let entered = entries.iter().filter(|(ifindex, entry)| {
            entry.flags & (PORT_FOREIGN | PORT_WIRE) == 0 && entry.bridge != **ifindex
        });
        let candidates: BTreeSet<u32> = pinned.chain(entered.map(|(ifindex, _)| *ifindex)).collect();
        let mut found = Vec::new();
        for link in candidates.into_iter().filter_map(|ifindex| links.get(&ifindex)) {
            if !self.is_known(link.index)
                && self.datapath.has_any(&Program::OF_CONTAINERS, link.index, &link.name)?
            {
                found.push((link, vlan_gateway::is_port_name(&link.name)));
            }
        }
        // A gateway without containers is removed.
        if found.iter().all(|(_, is_gateway)| *is_gateway) && self.unattached.is_empty() {
            return Ok(());
        }
        for (link, is_gateway) in found {
            let bridge = entries.get(&link.index).map(|entry| entry.bridge);
            let claimed = [Some(link.index), bridge].into_iter().flatten();
            let claimed = claimed.filter_map(|ifindex| slots.remove(&ifindex)).collect();
            let owner = link.alias.as_deref().and_then(owner);
            let port = Unattached { name: link.name.clone(), bridge, owner, slots: claimed, is_gateway };
            self.unattached.insert(link.index, port);
        }
        Ok(())
    }

    /// Keeps the programs of a port whose attachment is about to be taken out.
    pub(crate) fn leave_guarded(&mut self, key: &AttachmentKey) {
        let Some(attachment) = self.registry.get_mut(key) else { return };
        attachment.abandoned = true;
        let Interface { name, index } = attachment.port.host.clone();
        let (owner, is_gateway) = (Some(key.clone()), false);
        let bridge = Some(attachment.port.bridge.index);
        self.unattached.insert(index, Unattached { name, bridge, owner, slots: Vec::new(), is_gateway });
    }

    /// Whether a bridge has ports that are no attachment's and stay as they are.
    pub(crate) fn has_unattached_on(&self, bridge: u32) -> bool {
        self.unattached.values().any(|port| port.bridge == Some(bridge))
    }

    /// Hands a port over to its attachment, on the bridge `now`, and leaves the bridge that it was on before. Returns whether it has
    /// programs already.
    pub(crate) fn hand_over_unattached(&mut self, host: u32, now: u32) -> bool {
        let Some(port) = self.take_unattached(host) else { return false };
        port.bridge.filter(|before| *before != now).into_iter().for_each(|before| self.leave_bridge(before));
        true
    }

    fn take_unattached(&mut self, host: u32) -> Option<Unattached> {
        let port = self.unattached.remove(&host)?;
        let mut slots = port.slots.clone();
        // The gateways of VLANs go with the last port.
        if self.unattached.values().all(|port| port.is_gateway) {
            slots
                .extend(std::mem::take(&mut self.unattached).into_values().flat_map(|gateway| gateway.slots));
        }
        slots.into_iter().for_each(|slot| self.registry.slots.give_back(slot));
        self.leftovers = true;
        Some(port)
    }

    /// Takes the programs off a port that was taken over and is to have fewer. The new ones are in force.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(crate) fn detach_unwanted(&mut self, attachment: &Attachment) -> Result<(), DatapathError> {
        let host = &attachment.port.host;
        let wanted: Vec<_> = programs::of_port(attachment).iter().map(|hook| hook.program).collect();
        let unwanted = Program::OF_CONTAINERS.into_iter().rev().filter(|program| !wanted.contains(program));
        for program in unwanted {
            self.datapath.detach(&Hook::open(program, host.index, host.name.clone()))?;
        }
        Ok(())
    }

    /// Takes the programs off a port that nobody restricts any more, if its link is there, and forgets it.
    pub(crate) fn let_go(&mut self, host: u32) {
        let Some(port) = self.unattached.get(&host).cloned() else { return };
        for program in Program::OF_CONTAINERS.into_iter().rev() {
            if let Err(error) = self.datapath.detach(&Hook::open(program, host, port.name.clone())) {
                tracing::warn!(link = port.name, %error, "cannot detach a program");
            }
        }
        self.forget_unattached(host);
    }

    /// Forgets a port whose link is gone or was let go, and removes what is left of it.
    pub(crate) fn forget_unattached(&mut self, host: u32) {
        let Some(port) = self.take_unattached(host) else { return };
        if let Err(error) = self.sweep_now() {
            tracing::warn!(link = port.name, %error, "cannot remove what is left of a port");
        }
        port.bridge.into_iter().for_each(|bridge| self.leave_bridge(bridge));
    }

    /// Removes the record of a port whose link has ended, whatever is wrong with it: its container has no other place.
    pub(crate) fn discard_record_of_unattached(&mut self, host: u32) {
        let owner = self.unattached.get(&host).and_then(|port| port.owner.clone());
        if let Some(key) = owner.filter(|key| self.registry.get(key).is_none()) {
            self.discard_record(&key);
        }
    }

    /// Removes what only ports needed that have been taken over or are gone.
    pub(crate) fn sweep_leftovers(&mut self) {
        if self.leftovers
            && self.unattached.is_empty()
            && let Err(error) = self.sweep_now()
        {
            tracing::warn!(%error, "cannot remove what ports without a record have left");
        }
    }

    fn sweep_now(&mut self) -> Result<(), KernelError> {
        self.leftovers = !self.unattached.is_empty();
        let entries = self.port_entries()?;
        let links = self.links_by_index()?;
        self.sweep_gateways(&entries, &links, &[]);
        let links = self.links_by_index()?;
        self.sweep(&entries, &links, Swept::Meanwhile);
        Ok(())
    }

    fn links_by_index(&mut self) -> Result<Links, KernelError> {
        Ok(self.kernel.links()?.into_iter().map(|link| (link.index, link)).collect())
    }

    /// The pins of a port's programs, for whoever deletes its link.
    pub(crate) fn pins_of_unattached(&mut self, host: u32) -> Vec<PathBuf> {
        let Some(port) = self.unattached.get(&host) else { return Vec::new() };
        let hook = |program| Hook::open(program, host, port.name.clone());
        Program::OF_CONTAINERS.into_iter().map(|program| self.datapath.abandon(&hook(program))).collect()
    }

    /// What is wrong with each, and the cure. Containers without their bridge have reasons of their own.
    pub(crate) fn unattached_reasons(&self) -> Vec<String> {
        let is_orphan = |host: &u32| self.orphans.iter().any(|orphan| orphan.host() == *host);
        let ports = self.unattached.iter().filter(|(host, port)| !port.is_gateway && !is_orphan(host));
        ports.map(|(_, port)| self.unattached_reason(port)).collect()
    }

    fn unattached_reason(&self, port: &Unattached) -> String {
        let record = port.owner.as_ref().map(|key| self.store.path(key));
        let name = record.as_ref().and_then(|path| path.file_name());
        let found = self.unreadable.iter().find(|it| name.is_some() && it.path.file_name() == name);
        let whose = port.owner.as_ref().map_or_else(|| "a container".to_owned(), ToString::to_string);
        let why = found.map_or_else(|| "it has no state record".to_owned(), ToString::to_string);
        let place = record.unwrap_or_else(|| self.store.directory().to_path_buf());
        format!(
            "{} of {whose} stays guarded as it is, and is not served otherwise: {why}. Delete the container and make it \
             anew, or put its record back to {} and start the agent again",
            port.name,
            place.display()
        )
    }
}
