//! Comparing an attachment with the kernel.

use dataplane::abi::Port;

use super::{Kernel, KernelError, in_map};
use crate::bpf::hook::Hook;
use crate::bpf::maps::lookup;
use crate::registry::{Attachment, Bridge};

impl Kernel {
    /// What of a port is missing or altered, each as one clause; empty if nothing is.
    ///
    /// # Errors
    /// The kernel cannot say.
    pub fn audit_port(&mut self, attachment: &Attachment) -> Result<Vec<String>, KernelError> {
        let host = &attachment.port.host;
        let Some(link) = self.link(host.index)?.filter(|link| link.name == host.name) else {
            return Ok(vec![format!("the link {} is gone", host.name)]);
        };
        let mut findings = Vec::new();
        if link.master != Some(attachment.port.bridge.index) {
            findings.push(format!("{} is not a port of {}", host.name, attachment.port.bridge.name));
        }
        let entry = lookup(&self.maps.ports, &attachment.port_key()).map_err(in_map("PORTS"))?;
        if entry.map(|entry| Port { asks: 0, ..entry }) != Some(attachment.port_entry(0)) {
            findings.push(format!("the entry of {} in PORTS is {}", host.name, missing_or_altered(&entry)));
        }
        let station = lookup(&self.maps.stations, &attachment.station_key()).map_err(in_map("FDB"))?;
        if station != Some(attachment.station()) {
            findings.push(format!(
                "the entry of {} in FDB is {}",
                attachment.port.mac,
                missing_or_altered(&station)
            ));
        }
        for (key, ip) in attachment.address_keys().zip(&attachment.port.ips) {
            let owner = lookup(&self.maps.addresses, &key).map_err(in_map("ADDRESSES"))?;
            if owner.is_none_or(|owner| owner.ifindex != host.index) {
                findings.push(format!("the entry of {ip} in ADDRESSES is {}", missing_or_altered(&owner)));
            }
        }
        for hook in attachment.hooks() {
            self.audit_hook(&hook, &mut findings)?;
        }
        Ok(findings)
    }

    /// What of a bridge is missing or altered.
    ///
    /// # Errors
    /// The kernel cannot say.
    pub fn audit_bridge(&mut self, bridge: &Bridge) -> Result<Vec<String>, KernelError> {
        let name = &bridge.link.name;
        if self.link(bridge.link.index)?.is_none_or(|link| link.name != *name) {
            return Ok(vec![format!("the bridge {name} is gone")]);
        }
        let mut findings = Vec::new();
        let entry = self.port(bridge.link.index)?;
        if entry.map(|entry| Port { asks: 0, ..entry }) != Some(bridge.port_entry()) {
            findings.push(format!("the entry of {name} in PORTS is {}", missing_or_altered(&entry)));
        }
        if let Some(key) = bridge.station_key() {
            let station = lookup(&self.maps.stations, &key).map_err(in_map("FDB"))?;
            if station != Some(bridge.station()) {
                findings.push(format!("the entry of {name} in FDB is {}", missing_or_altered(&station)));
            }
        }
        self.audit_hook(&bridge.hook(), &mut findings)?;
        Ok(findings)
    }

    fn audit_hook(&mut self, hook: &Hook, findings: &mut Vec<String>) -> Result<(), KernelError> {
        if !self.is_attached(hook)? {
            findings.push(format!("the program {} is not attached to {}", hook.program.name(), hook.ifname));
        }
        Ok(())
    }
}

fn missing_or_altered<T>(entry: &Option<T>) -> &'static str {
    if entry.is_some() { "altered" } else { "missing" }
}
