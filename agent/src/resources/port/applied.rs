//! Gives a port its entries and programs, whatever of them it has.

use std::collections::HashSet;

use shunt_agent_api::AttachmentKey;
use shunt_dataplane::abi::Port;

use crate::datapath::{FlowAffinity, encode, programs};
use crate::kernel::KernelError;
use crate::registry::Attachment;
use crate::resources::reconcile::{Cause, Resource};
use crate::resources::{Finding, Node, Refusal};

impl Resource for Attachment {
    fn name(&self) -> String {
        self.port.key.to_string()
    }

    fn ifname(&self) -> &str {
        &self.port.host.name
    }

    fn key(&self) -> Option<&AttachmentKey> {
        Some(&self.port.key)
    }

    fn observe(&self, node: &mut Node) -> Result<Vec<Finding>, Refusal> {
        node.audit(self)
    }

    fn apply(&self, node: &mut Node, cause: Cause<'_>) -> Result<(), Refusal> {
        let host = self.port.host.index;
        match cause {
            Cause::New => {
                let is_in_use = node.repairs.in_use.contains(&host);
                let affinity = match is_in_use {
                    true => FlowAffinity::Learn,
                    false if node.may_have_kernel_flows(self) => FlowAffinity::Lookup,
                    false => FlowAffinity::Fast,
                };
                node.datapath.write_port(self, affinity)?;
                node.datapath.attach_all(&programs::of_port(self))?;
                node.datapath.write_mappings(self)?;
                if is_in_use {
                    node.learn(&HashSet::from([host]));
                }
                Ok(())
            }
            Cause::Start(entries) => Ok(node.complete_port(self, entries.get(&host))?),
            Cause::Repair(findings) => {
                node.repair_port(self, findings)?;
                if findings.iter().any(|it| matches!(it, Finding::Entry { .. } | Finding::Program(_))) {
                    let entry = node.datapath.port(host)?;
                    node.complete_port(self, entry.as_ref())?;
                    node.repairs.unsure.insert(host);
                }
                Ok(())
            }
        }
    }

    fn is_beyond_repair(&self, node: &mut Node, findings: &[Finding]) -> bool {
        if matches!(findings, [Finding::Link(_)]) {
            return true;
        }
        let bridge = self.port.bridge.index;
        let has_lost_its_bridge = findings.iter().any(|finding| matches!(finding, Finding::Master { .. }))
            && node.kernel.link(bridge).is_ok_and(|link| link.is_none());
        // The ports' events come before the bridge's.
        if has_lost_its_bridge && let Err(error) = node.gone(bridge) {
            tracing::warn!(%error, "cannot handle the deletion of a bridge");
        }
        has_lost_its_bridge
    }
}

impl Node {
    /// Gives a port what it lacks of programs and entries. Where something was missing, it learns before it is
    /// attached again: the kernel may have begun flows.
    fn complete_port(&mut self, attachment: &Attachment, entry: Option<&Port>) -> Result<(), KernelError> {
        let mut intact =
            entry.is_some_and(|entry| encode::as_written(*entry) == encode::port(attachment, entry.affinity));
        let mut missing = Vec::new();
        for hook in programs::of_port(attachment) {
            if !self.datapath.adopt(&hook)? {
                missing.push(hook);
            }
        }
        intact &= missing.is_empty();
        if intact {
            self.datapath.write_policer(attachment)?;
            self.datapath.write_station(attachment)?;
            self.datapath.complete_addresses(attachment)?;
            self.datapath.write_masquerades(attachment)?;
            self.datapath.write_membership(attachment)?;
        } else {
            self.datapath.write_port(attachment, FlowAffinity::Learn)?;
        }
        for hook in &missing {
            tracing::warn!(key = %attachment.port.key, %hook, "attached again");
            self.datapath.attach(hook)?;
        }
        self.datapath.write_mappings(attachment)?;
        if !intact {
            self.repairs.unsure.insert(attachment.port.host.index);
        }
        Ok(())
    }

    /// Repairs what is not programs and entries.
    fn repair_port(&mut self, attachment: &Attachment, findings: &[Finding]) -> Result<(), Refusal> {
        let port = &attachment.port;
        for finding in findings {
            match finding {
                Finding::Master { .. } => {
                    let flags = self.repairs.flags_of(attachment);
                    self.kernel.enslave(
                        port.host.index,
                        port.bridge.index,
                        flags,
                        attachment.known_station(),
                    )?;
                }
                Finding::Flags { .. } => {
                    let flags = self.repairs.flags_of(attachment);
                    self.kernel.set_port_flags(port.host.index, flags, attachment.known_station())?;
                }
                Finding::Station { .. } => {
                    let Some((mac, is_fixed)) = attachment.known_station() else { continue };
                    self.kernel.add_station(port.host.index, mac, is_fixed)?;
                }
                Finding::Limit(_) => {
                    self.kernel.limit(port)?;
                    self.datapath.write_policer(attachment)?;
                }
                Finding::StateFile => self.store.write(port)?,
                Finding::Entry { .. }
                | Finding::Program(_)
                | Finding::Driver(_)
                | Finding::Link(_)
                | Finding::Mac(_)
                | Finding::Pin(_)
                | Finding::Queue(_)
                | Finding::Rules
                | Finding::Bridge(_)
                | Finding::Sockets
                | Finding::Lease(_)
                | Finding::Relocation { .. }
                | Finding::Address { .. } => {}
            }
        }
        Ok(())
    }
}
