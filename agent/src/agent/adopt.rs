//! Replaces the programs of ports that an earlier agent attached.

use std::collections::HashSet;

use super::Agent;
use super::recover::Entries;
use crate::kernel::{Asks, KernelError};
use crate::registry::{Attachment, Bridge};

impl Agent {
    /// Takes over every bridge and port. Returns the host ends whose program was missing: the kernel may have
    /// begun flows of these ports. A port that fails does not affect the others.
    pub(super) fn adopt(&mut self, entries: &Entries) -> HashSet<u32> {
        let mut unsure = HashSet::new();
        for bridge in self.registry.bridges().cloned().collect::<Vec<_>>() {
            match self.adopt_bridge(&bridge, entries) {
                Ok(true) => {}
                Ok(false) => {
                    let ports = self.registry.of_bridge(bridge.link.index);
                    unsure.extend(ports.map(|attachment| attachment.port.host.index));
                }
                Err(error) => {
                    self.warn(format!("{}: cannot take over its programs: {error}", bridge.link.name));
                }
            }
        }
        for attachment in self.registry.attachments().cloned().collect::<Vec<_>>() {
            match self.adopt_port(&attachment, entries) {
                Ok(true) => {}
                Ok(false) => _ = unsure.insert(attachment.port.host.index),
                Err(error) => {
                    self.warn(format!("{}: cannot take over its programs: {error}", attachment.port.key));
                }
            }
        }
        unsure
    }

    /// Returns false if its program was missing; then its ports learn before it is attached again.
    pub(super) fn adopt_bridge(&mut self, bridge: &Bridge, entries: &Entries) -> Result<bool, KernelError> {
        match entries.get(&bridge.link.index) {
            // The station is a separate entry: an agent that was killed may have written only the other.
            Some(entry) if *entry == bridge.port_entry() => self.kernel.write_bridge_station(bridge)?,
            _ => self.kernel.write_bridge(bridge)?,
        }
        if self.kernel.adopt(&bridge.hook())? {
            return Ok(true);
        }
        for attachment in self.registry.of_bridge(bridge.link.index) {
            self.kernel.write_port(attachment, Asks::Learn)?;
        }
        tracing::warn!(hook = %bridge.hook(), "attached again");
        self.kernel.attach(&bridge.hook())?;
        Ok(false)
    }

    /// Returns false if a program or an entry was missing; then the port learns before it is attached again.
    pub(super) fn adopt_port(
        &mut self,
        attachment: &Attachment,
        entries: &Entries,
    ) -> Result<bool, KernelError> {
        let entry = entries.get(&attachment.port.host.index);
        let mut intact = entry.is_some_and(|entry| *entry == attachment.port_entry(entry.asks));
        let mut missing = Vec::new();
        for hook in attachment.hooks() {
            if !self.kernel.adopt(&hook)? {
                missing.push(hook);
            }
        }
        intact &= missing.is_empty();
        if intact {
            self.kernel.write_policer(attachment)?;
            self.kernel.write_station(attachment)?;
            self.kernel.write_addresses(attachment)?;
            self.kernel.write_masquerades(attachment)?;
            self.kernel.write_membership(attachment)?;
        } else {
            self.kernel.write_port(attachment, Asks::Learn)?;
        }
        for hook in &missing {
            tracing::warn!(key = %attachment.port.key, %hook, "attached again");
            self.kernel.attach(hook)?;
        }
        self.kernel.write_mappings(attachment)?;
        Ok(intact)
    }

    pub(super) fn warn(&mut self, warning: String) {
        tracing::warn!("{warning}");
        self.warnings.push(warning);
    }
}
