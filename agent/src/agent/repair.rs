//! Repairs entries, programs, bridge ports and state files that somebody else has changed.
//!
//! Netlink reports changes of bridge ports, FDB entries and qdiscs at once. Removed map entries and state files are found by a periodic
//! check: once a second, for [`BUDGET`] at most, in turn; programs more often (`programs.rs`). An operator's intent is respected: a link
//! that is down stays down, and only the plugin creates bridges.

use std::time::{Duration, Instant};

use shunt_agent_api::{AttachmentKey, EventKind, Interface};

use super::{Agent, Refusal};
use crate::kernel::Finding;
use crate::registry::{Attachment, Bridge};

/// Time of one check per second.
const BUDGET: Duration = Duration::from_millis(10);

impl Agent {
    /// Checks and repairs uplinks, bridges and attachments, as many as the budget allows.
    pub fn tick(&mut self) {
        self.store.retry();
        self.read_speeds();
        self.tell_capacity();
        self.reattach_orphans();
        self.repair_pins();
        self.repair_nat_ingress();
        self.check_masquerading();
        self.repair_sockets();
        self.repair_trunks();
        self.repair_uplinks();
        self.repair_gateways();
        self.return_relocations();
        self.sweep_flows();
        self.sweep_learned();
        for bridge in self.registry.bridges().cloned().collect::<Vec<_>>() {
            self.repair_bridge(&bridge);
        }
        for key in std::mem::take(&mut self.repairs.deferred) {
            self.repair_attachment(&key);
        }
        self.repair_programs();
        self.repair_leases();
        let begun = Instant::now();
        for _ in 0..self.registry.len() {
            let Some(key) = self.registry.after(self.repairs.last.as_ref()).cloned() else { break };
            self.repair_attachment(&key);
            self.repairs.last = Some(key);
            if begun.elapsed() > BUDGET {
                break;
            }
        }
        self.learn_unsure();
    }

    /// Learns the flows of repaired ports: the kernel may have begun some, or the programs may have missed
    /// some. One dump of conntrack serves all; until then these ports leave unknown flows to the kernel.
    pub(super) fn learn_unsure(&mut self) {
        let mut unsure = std::mem::take(&mut self.repairs.unsure);
        unsure.retain(|ifindex| self.registry.by_host(*ifindex).is_some());
        if !unsure.is_empty() {
            self.learn(&unsure);
        }
    }

    /// Checks and repairs an attachment.
    pub(super) fn repair_attachment(&mut self, key: &AttachmentKey) {
        let Some(attachment) = self.registry.get(key).cloned() else { return };
        let name = key.to_string();
        let findings = self.audit(&attachment);
        // A deleted link has its own event, which removes the attachment.
        if self.repairs.is_off() || matches!(findings.as_deref(), Ok([Finding::Link(_)])) {
            return;
        }
        let bridge = attachment.port.bridge.index;
        if findings.iter().flatten().any(|finding| matches!(finding, Finding::Master { .. }))
            && self.kernel.link(bridge).is_ok_and(|link| link.is_none())
        {
            // The ports' events come before the bridge's.
            if let Err(error) = self.gone(bridge) {
                tracing::warn!(%error, "cannot handle the deletion of a bridge");
            }
            return;
        }
        let ifname = attachment.port.host.name.clone();
        let repair = |agent: &mut Self, findings: &[Finding]| {
            agent.apply_repairs(&attachment, findings)?;
            agent.audit(&attachment)
        };
        self.repair_findings(&name, Some(key), &ifname, findings, repair);
    }

    /// Restores pins: without them, the next agent would start with empty maps.
    fn repair_pins(&mut self) {
        let findings = self.kernel.audit_pins();
        if !self.repairs.is_off() {
            self.repair_findings("pins", None, "", Ok(findings), |agent, _| {
                agent.kernel.pin_again()?;
                Ok(agent.kernel.audit_pins())
            });
        }
    }

    pub(super) fn repair_bridge(&mut self, bridge: &Bridge) {
        let findings = self.audit_bridge_patiently(bridge);
        if self.repairs.is_off() || matches!(findings.as_deref(), Ok([Finding::Link(_)])) {
            return;
        }
        let name = bridge.link.name.clone();
        let repair = |agent: &mut Self, findings: &[Finding]| {
            for finding in findings {
                if let Finding::Address { address, .. } = finding {
                    agent.kernel.add_address(bridge.link.index, *address)?;
                }
            }
            let entries = agent.entry_of(bridge.link.index)?;
            if !agent.adopt_bridge(bridge, &entries)? {
                let ports = agent.registry.of_bridge(bridge.link.index);
                agent.repairs.unsure.extend(ports.map(|attachment| attachment.port.host.index));
            }
            agent.audit_bridge(bridge)
        };
        self.repair_findings(&name, None, &name, findings, repair);
    }

    /// Lists the faults of a bridge.
    pub(super) fn audit_bridge(&mut self, bridge: &Bridge) -> Result<Vec<Finding>, Refusal> {
        let mut findings = self.kernel.audit_bridge(bridge)?;
        let name = &bridge.link.name;
        let missing = self.missing_gateways(&bridge.link)?;
        findings
            .extend(missing.into_iter().map(|address| Finding::Address { bridge: name.clone(), address }));
        Ok(findings)
    }

    /// The same, without addresses that are missing only for a moment.
    fn audit_bridge_patiently(&mut self, bridge: &Bridge) -> Result<Vec<Finding>, Refusal> {
        let mut findings = self.audit_bridge(bridge)?;
        let is_address = |finding: &Finding| matches!(finding, Finding::Address { .. });
        if !findings.iter().any(is_address) {
            self.repairs.unaddressed.remove(&bridge.link.index);
        } else if !self.repairs.miss(bridge.link.index) {
            findings.retain(|finding| !is_address(finding));
        }
        Ok(findings)
    }

    /// Lists the faults of an attachment. Before the host end became a port, a missing bridge is no fault.
    pub(super) fn audit(&mut self, attachment: &Attachment) -> Result<Vec<Finding>, Refusal> {
        let mut findings = self.kernel.audit_port(attachment)?;
        if !self.repairs.in_service.contains_key(&attachment.port.host.index) {
            match findings.iter().position(|finding| matches!(finding, Finding::Master { .. })) {
                Some(position) => _ = findings.remove(position),
                None => self.notice_service(attachment)?,
            }
        }
        if self.has_lost_its_station(attachment, &findings)? {
            let Interface { name: host, .. } = attachment.port.host.clone();
            findings.push(Finding::Station { host, bridge: attachment.port.bridge.name.clone() });
        }
        // A container without its namespace sends nothing.
        let limits = self.kernel.audit_limits(attachment).unwrap_or_default();
        findings.extend(limits.into_iter().map(Finding::Limit));
        if !self.store.holds(&attachment.port) {
            findings.push(Finding::StateFile);
        }
        Ok(findings)
    }

    /// Whether the bridge has lost its static FDB entry of the container. A host end that is no port is
    /// another fault.
    fn has_lost_its_station(
        &mut self,
        attachment: &Attachment,
        findings: &[Finding],
    ) -> Result<bool, Refusal> {
        let (host, bridge) = (attachment.port.host.index, attachment.port.bridge.index);
        let Some(mac) = attachment.known_station().filter(|_| attachment.port.vlan.is_none()) else {
            return Ok(false);
        };
        if !self.repairs.in_service.contains_key(&host)
            || findings.iter().any(|finding| matches!(finding, Finding::Master { .. }))
        {
            return Ok(false);
        }
        if self.kernel.has_station(bridge, host, mac)? {
            self.repairs.stationed.insert(host);
            return Ok(false);
        }
        Ok(self.repairs.stationed.contains(&host) || attachment.port.restrictions.mac_check)
    }

    fn notice_service(&mut self, attachment: &Attachment) -> Result<(), Refusal> {
        let bridge = Some(attachment.port.bridge.index);
        if let Some(link) = self.kernel.link(attachment.port.host.index)?.filter(|link| link.master == bridge)
        {
            self.repairs.serves(&link);
        }
        Ok(())
    }

    /// Repairs, checks again, and logs the outcome once.
    pub(super) fn repair_findings(
        &mut self,
        name: &str,
        key: Option<&AttachmentKey>,
        ifname: &str,
        findings: Result<Vec<Finding>, Refusal>,
        repair: impl FnOnce(&mut Self, &[Finding]) -> Result<Vec<Finding>, Refusal>,
    ) {
        let begun = Instant::now();
        let wrong = match &findings {
            Ok(findings) if findings.is_empty() => return self.repairs.resolve(name),
            Ok(findings) => joined(findings),
            Err(error) => error.to_string(),
        };
        if !self.repairs.may_repair(name) {
            self.repairs.deferred.extend(key.cloned());
            return;
        }
        for finding in findings.iter().flatten().filter(|finding| matches!(finding, Finding::Program(_))) {
            self.events.tell(EventKind::ProgramLost, key, ifname, finding.to_string());
        }
        let left = match findings.and_then(|findings| repair(self, &findings)) {
            Ok(left) if left.is_empty() => {
                self.repairs.count += 1;
                self.repairs.faults.remove(name);
                tracing::warn!(what = name, wrong, took = ?begun.elapsed(), "repaired");
                return self.events.tell(EventKind::Repair, key, ifname, wrong);
            }
            Ok(left) => left.iter().map(Finding::to_string).collect(),
            Err(error) => vec![error.to_string()],
        };
        if self.repairs.faults.get(name) != Some(&left) {
            tracing::error!(what = name, wrong, left = left.join("; "), "cannot be repaired");
            self.repairs.faults.insert(name.to_owned(), left);
        }
    }

    fn apply_repairs(&mut self, attachment: &Attachment, findings: &[Finding]) -> Result<(), Refusal> {
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
                    let Some(mac) = attachment.known_station() else { continue };
                    self.kernel.add_station(port.host.index, mac)?;
                }
                Finding::Limit(_) => self.kernel.limit(port)?,
                Finding::StateFile => self.store.write(port)?,
                Finding::Entry { .. }
                | Finding::Program(_)
                | Finding::Driver(_)
                | Finding::Link(_)
                | Finding::Mac(_)
                | Finding::Pin(_)
                | Finding::Relocation { .. }
                | Finding::Address { .. } => {}
            }
        }
        if findings.iter().any(|finding| matches!(finding, Finding::Entry { .. } | Finding::Program(_))) {
            let entries = self.entry_of(port.host.index)?;
            self.adopt_port(attachment, &entries)?;
            self.repairs.unsure.insert(port.host.index);
        }
        Ok(())
    }
}

fn joined(findings: &[Finding]) -> String {
    findings.iter().map(Finding::to_string).collect::<Vec<_>>().join("; ")
}
