//! What of an uplink is missing or altered.

use shunt_agent_api::BridgePort;
use shunt_dataplane::abi::Port;

use crate::datapath::maps::lookup;
use crate::datapath::{encode, in_map, programs};
use crate::kernel::KernelError;
use crate::registry::Uplink;
use crate::resources::{Finding, Node, Refusal};

impl Node {
    /// Lists the faults of an uplink.
    pub(crate) fn audit_uplink(&mut self, uplink: &Uplink) -> Result<Vec<Finding>, Refusal> {
        let mut findings = self.audit_uplink_alone(uplink)?;
        if self.is_relocating(uplink) {
            let (uplink, bridge) = (uplink.link.name.clone(), uplink.bridge.name.clone());
            findings.push(Finding::Relocation { uplink, bridge });
        }
        Ok(findings)
    }

    /// The uplink that a port names, if it serves.
    pub(crate) fn uplink_of(&self, port: &BridgePort) -> Option<Uplink> {
        let wanted = port.service.uplink.as_ref()?;
        self.registry.uplinks.values().find(|uplink| uplink.link.name == wanted.name).cloned()
    }

    /// The same, without what is being moved.
    ///
    /// # Errors
    /// The kernel cannot say.
    fn audit_uplink_alone(&mut self, uplink: &Uplink) -> Result<Vec<Finding>, KernelError> {
        let (name, index) = (&uplink.link.name, uplink.link.index);
        let Some(link) = self.kernel.link(index)?.filter(|link| link.name == *name) else {
            return Ok(vec![Finding::Link(name.clone())]);
        };
        let mut findings = Vec::new();
        if link.master != Some(uplink.bridge.index) {
            findings.push(Finding::Master { host: name.clone(), bridge: uplink.bridge.name.clone() });
        }
        let entry = self.datapath.port(index)?;
        if entry.map(|entry| Port { affinity: 0, ..entry }) != Some(encode::uplink_port(uplink)) {
            findings.push(Finding::entry("PORTS", name, entry.as_ref()));
        }
        let tagged =
            lookup(&self.datapath.maps.tagged, &encode::port_key(index)).map_err(in_map("TAGGED"))?;
        if tagged != Some(encode::every_vlan()) {
            findings.push(Finding::entry("TAGGED", name, tagged.as_ref()));
        }
        let is_member =
            self.datapath.members(uplink.bridge.index).map_err(in_map("MEMBERS"))?.contains(&index);
        if is_member == uplink.blocked {
            findings.push(Finding::entry("MEMBERS", name, is_member.then_some(&index)));
        }
        let learning = self.datapath.learning(uplink)?;
        let expected = (!uplink.deaf).then_some((link.mtu, uplink.slot));
        if learning.map(|learning| (learning.mtu, learning.slot)) != expected {
            findings.push(Finding::entry("UPLINKS", name, learning.as_ref()));
        }
        for hook in programs::of_uplink(uplink) {
            findings.extend(self.audit_program(&hook)?);
        }
        findings.extend(self.audit_native(uplink));
        Ok(findings)
    }

    /// Lists what is missing of an uplink with XDP.
    fn audit_native(&self, uplink: &Uplink) -> Vec<Finding> {
        let name = &uplink.link.name;
        if self.datapath.native(uplink).is_none() {
            return Vec::new();
        }
        let (runs, is_target) = self.datapath.is_native_in_force(uplink);
        let driver = (!runs).then(|| Finding::Driver(name.clone()));
        let target = (!is_target).then(|| Finding::entry("NICS", name, None::<&u32>));
        driver.into_iter().chain(target).collect()
    }
}

/// The name of an uplink in faults.
pub(super) fn fault_name(name: &str) -> String {
    format!("uplink {name}")
}
