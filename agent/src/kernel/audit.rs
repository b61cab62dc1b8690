//! Compares an attachment with the kernel.

use shunt_dataplane::abi::Port;

use super::{Finding, Kernel, KernelError, in_map};
use crate::bpf::hook::Hook;
use crate::bpf::maps::lookup;
use crate::registry::{Attachment, Bridge};

impl Kernel {
    /// Lists what of a port is missing or altered.
    ///
    /// # Errors
    /// The kernel cannot say.
    pub fn audit_port(&mut self, attachment: &Attachment) -> Result<Vec<Finding>, KernelError> {
        let host = &attachment.port.host;
        let Some(link) = self.link(host.index)?.filter(|link| link.name == host.name) else {
            return Ok(vec![Finding::Link(host.name.clone())]);
        };
        let mut findings = Vec::new();
        let is_port = attachment.port.vlan.is_none();
        if is_port && link.master != Some(attachment.port.bridge.index) {
            findings.push(Finding::Master {
                host: host.name.clone(),
                bridge: attachment.port.bridge.name.clone(),
            });
        }
        let bridge = attachment.port.bridge.name.clone();
        // A port that is down is still being set up.
        if is_port && link.master.is_some() && link.up && !attachment.is_served_by(&link) {
            let expected = attachment.expected_flags(&link);
            findings.push(Finding::Flags {
                host: host.name.clone(),
                bridge,
                expected,
                found: link.port_flags,
            });
        }
        let entry = lookup(&self.maps.ports, &attachment.port_key()).map_err(in_map("PORTS"))?;
        if entry.map(|entry| Port { asks: 0, ..entry }) != Some(attachment.port_entry(0)) {
            findings.push(Finding::entry("PORTS", &host.name, entry.as_ref()));
        }
        let station = lookup(&self.maps.stations, &attachment.station_key()).map_err(in_map("FDB"))?;
        if station != Some(attachment.station()) {
            findings.push(Finding::entry("FDB", &attachment.port.mac, station.as_ref()));
        }
        for (key, ip) in attachment.address_keys().zip(attachment.addresses()) {
            let owner = lookup(&self.maps.addresses, &key).map_err(in_map("ADDRESSES"))?;
            if owner.is_none_or(|owner| owner.ifindex != host.index) {
                findings.push(Finding::entry("ADDRESSES", ip, owner.as_ref()));
            }
        }
        findings.extend(self.audit_mappings(attachment)?);
        findings.extend(self.audit_masquerades(attachment)?);
        self.audit_membership(attachment, &mut findings)?;
        for hook in attachment.hooks() {
            self.audit_hook(&hook, &mut findings)?;
        }
        Ok(findings)
    }

    /// Lists what of a bridge is missing or altered.
    ///
    /// # Errors
    /// The kernel cannot say.
    pub fn audit_bridge(&mut self, bridge: &Bridge) -> Result<Vec<Finding>, KernelError> {
        let name = &bridge.link.name;
        if self.link(bridge.link.index)?.is_none_or(|link| link.name != *name) {
            return Ok(vec![Finding::Link(name.clone())]);
        }
        let mut findings = Vec::new();
        let entry = self.port(bridge.link.index)?;
        if entry.map(|entry| Port { asks: 0, ..entry }) != Some(bridge.port_entry()) {
            findings.push(Finding::entry("PORTS", name, entry.as_ref()));
        }
        if let Some(key) = bridge.station_key() {
            let station = lookup(&self.maps.stations, &key).map_err(in_map("FDB"))?;
            if station != Some(bridge.station()) {
                findings.push(Finding::entry("FDB", name, station.as_ref()));
            }
        }
        self.audit_hook(&bridge.hook(), &mut findings)?;
        Ok(findings)
    }

    /// A finding if a program is not attached.
    ///
    /// # Errors
    /// The kernel cannot say.
    pub fn audit_program(&mut self, hook: &Hook) -> Result<Vec<Finding>, KernelError> {
        let mut findings = Vec::new();
        self.audit_hook(hook, &mut findings)?;
        Ok(findings)
    }

    fn audit_hook(&mut self, hook: &Hook, findings: &mut Vec<Finding>) -> Result<(), KernelError> {
        if !self.is_attached(hook)? {
            findings.push(Finding::Program(hook.clone()));
        }
        Ok(())
    }
}
