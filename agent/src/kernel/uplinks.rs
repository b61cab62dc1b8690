//! Map entries and enslavement of bridges' uplinks.

use shunt_dataplane::abi::Port;
use shunt_netlink::bridge::PortFlags;
use shunt_netlink::link::{Selector, leave_master, set_link_up};

use super::{Finding, Kernel, KernelError, in_map};
use crate::bpf::maps::{insert, lookup, remove};
use crate::uplink::Uplink;

impl Kernel {
    /// Writes the entries of an uplink.
    ///
    /// # Errors
    /// The kernel's; some entries may have been written.
    pub fn write_uplink(&mut self, uplink: &Uplink) -> Result<(), KernelError> {
        insert(&mut self.maps.tagged, uplink.port_key(), Uplink::tagged()).map_err(in_map("TAGGED"))?;
        insert(&mut self.maps.ports, uplink.port_key(), uplink.port_entry()).map_err(in_map("PORTS"))?;
        self.write_learning(uplink)?;
        self.write_flooding(uplink)
    }

    /// Writes whether an uplink forwards or is blocked.
    ///
    /// # Errors
    /// The kernel's; some entries may have been written.
    pub fn write_forwarding(&mut self, uplink: &Uplink) -> Result<(), KernelError> {
        insert(&mut self.maps.ports, uplink.port_key(), uplink.port_entry()).map_err(in_map("PORTS"))?;
        self.write_flooding(uplink)
    }

    /// A blocked uplink is not in the flood list.
    fn write_flooding(&mut self, uplink: &Uplink) -> Result<(), KernelError> {
        let (bridge, ifindex) = (uplink.bridge.index, uplink.link.index);
        if uplink.blocked {
            return self.leave(bridge, ifindex).map_err(in_map("MEMBERS"));
        }
        self.join(bridge, ifindex)
    }

    /// Removes them. Continues after errors.
    pub fn erase_uplink(&mut self, uplink: &Uplink) -> Vec<KernelError> {
        let mut errors = self.erase_membership(uplink.bridge.index, uplink.link.index);
        errors.extend(remove(&mut self.maps.ports, &uplink.port_key()).map_err(in_map("PORTS")).err());
        errors.extend(self.erase_learning(uplink));
        self.maps.clear_drops(uplink.link.index);
        errors
    }

    /// Enslaves an uplink to its bridge and sets it up.
    ///
    /// # Errors
    /// Netlink's.
    pub fn enslave_uplink(&mut self, uplink: &Uplink) -> Result<(), KernelError> {
        self.enslave(uplink.link.index, uplink.bridge.index, PortFlags::default(), None)?;
        Ok(self.route.run(set_link_up(Selector::Index(uplink.link.index)))?)
    }

    /// Releases an uplink, if it is still a port of its bridge.
    ///
    /// # Errors
    /// Netlink's.
    pub fn release_uplink(&mut self, uplink: &Uplink) -> Result<(), KernelError> {
        let link = self.link(uplink.link.index)?.filter(|link| link.name == uplink.link.name);
        if link.is_none_or(|link| link.master != Some(uplink.bridge.index)) {
            return Ok(());
        }
        Ok(self.route.run(leave_master(uplink.link.index))?)
    }

    /// Lists what of an uplink is missing or altered.
    ///
    /// # Errors
    /// The kernel cannot say.
    pub fn audit_uplink(&mut self, uplink: &Uplink) -> Result<Vec<Finding>, KernelError> {
        let (name, index) = (&uplink.link.name, uplink.link.index);
        let Some(link) = self.link(index)?.filter(|link| link.name == *name) else {
            return Ok(vec![Finding::Link(name.clone())]);
        };
        let mut findings = Vec::new();
        if link.master != Some(uplink.bridge.index) {
            findings.push(Finding::Master { host: name.clone(), bridge: uplink.bridge.name.clone() });
        }
        let entry = self.port(index)?;
        if entry.map(|entry| Port { asks: 0, ..entry }) != Some(uplink.port_entry()) {
            findings.push(Finding::entry("PORTS", name, entry.as_ref()));
        }
        let tagged = lookup(&self.maps.tagged, &uplink.port_key()).map_err(in_map("TAGGED"))?;
        if tagged != Some(Uplink::tagged()) {
            findings.push(Finding::entry("TAGGED", name, tagged.as_ref()));
        }
        let is_member = self.members(uplink.bridge.index).map_err(in_map("MEMBERS"))?.contains(&index);
        if is_member == uplink.blocked {
            findings.push(Finding::entry("MEMBERS", name, is_member.then_some(&index)));
        }
        let learning = self.learning(uplink)?;
        if learning.is_none_or(|learning| (learning.mtu, learning.slot) != (link.mtu, uplink.slot)) {
            findings.push(Finding::entry("UPLINKS", name, learning.as_ref()));
        }
        for hook in uplink.hooks() {
            findings.extend(self.audit_program(&hook)?);
        }
        self.audit_native(uplink, &mut findings);
        Ok(findings)
    }
}
