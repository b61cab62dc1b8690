//! Map entries of masqueraded attachments, and of the interfaces that masquerade.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use shunt_dataplane::abi::translation::{Masquerade, Outlet};
use shunt_dataplane::abi::{AddressKey, PortKey};
use shunt_dataplane::wire::address::Address;

use super::{Finding, Kernel, KernelError, in_map};
use crate::bpf::maps::{insert, lookup, remove};
use crate::registry::Attachment;

impl Attachment {
    /// Whether the programs masquerade its packets. Packets of a port in a VLAN enter the node through the
    /// VLAN's gateway: the kernel masquerades them.
    pub fn is_masqueraded(&self) -> bool {
        let is_bridged = self.port.vlan.is_none() && self.port.restrictions.vlans.is_none();
        is_bridged && !self.port.masquerade.is_empty()
    }

    /// The entries of its addresses that are masqueraded.
    pub(crate) fn masquerade_entries(&self) -> impl Iterator<Item = (AddressKey, Masquerade)> {
        let prefixes: Vec<IpNet> = match self.is_masqueraded() {
            true => self.port.masquerade.iter().filter_map(|prefix| prefix.parse().ok()).collect(),
            false => Vec::new(),
        };
        let (bridge, ifindex) = (self.port.bridge.index, self.port.host.index);
        self.port.ips.iter().filter_map(move |ip| {
            let prefix = prefixes.iter().find(|prefix| prefix.contains(ip))?;
            let key = AddressKey::new(bridge, 0, Address::from(*ip));
            Some((key, Masquerade { mask: whole_mask(prefix), ifindex }))
        })
    }
}

/// A prefix's mask, of an IPv4 one as if mapped.
fn whole_mask(prefix: &IpNet) -> Address {
    let mut mask = [0xff; 16];
    let own = match prefix.netmask() {
        IpAddr::V4(mask) => mask.octets().to_vec(),
        IpAddr::V6(mask) => mask.octets().to_vec(),
    };
    mask[16 - own.len()..].copy_from_slice(&own);
    IpAddr::from(mask).into()
}

impl Kernel {
    /// Makes the programs begin a port's masqueraded connections, if masquerading is theirs.
    ///
    /// # Errors
    /// The kernel's; some entries may have been written.
    pub fn write_masquerades(&mut self, attachment: &Attachment) -> Result<(), KernelError> {
        if !self.begins_masquerading {
            return Ok(());
        }
        for (key, masquerade) in attachment.masquerade_entries() {
            insert(&mut self.maps.masquerades, key, masquerade).map_err(in_map("MASQUERADES"))?;
        }
        Ok(())
    }

    /// Leaves a port's new connections to the kernel, unless its addresses belong to another port by now.
    /// Continues after errors.
    pub fn erase_masquerades(&mut self, attachment: &Attachment) -> Vec<KernelError> {
        let erase = |(key, ours): (AddressKey, Masquerade)| {
            let known = lookup(&self.maps.masquerades, &key)?;
            let is_ours = known.is_some_and(|known| known.ifindex == ours.ifindex);
            if is_ours { remove(&mut self.maps.masquerades, &key) } else { Ok(()) }
        };
        let in_map = |source| KernelError::Map { map: "MASQUERADES", source };
        let erased = attachment.masquerade_entries().map(erase).filter_map(Result::err);
        erased.map(in_map).collect()
    }

    /// Removes every other masqueraded address.
    ///
    /// # Errors
    /// The kernel's.
    pub fn retain_masquerades(&mut self, is_known: impl Fn(&AddressKey) -> bool) -> Result<(), KernelError> {
        let known: Vec<_> =
            self.maps.masquerades.keys().collect::<Result<_, _>>().map_err(in_map("MASQUERADES"))?;
        for key in known.iter().filter(|key| !is_known(key)) {
            remove(&mut self.maps.masquerades, key).map_err(in_map("MASQUERADES"))?;
        }
        Ok(())
    }

    /// Lists missing or altered masqueraded addresses.
    ///
    /// # Errors
    /// The kernel cannot say.
    pub fn audit_masquerades(&self, attachment: &Attachment) -> Result<Vec<Finding>, KernelError> {
        let mut findings = Vec::new();
        let entries = attachment.masquerade_entries().filter(|_| self.begins_masquerading);
        for (key, masquerade) in entries {
            let entry = lookup(&self.maps.masquerades, &key).map_err(in_map("MASQUERADES"))?;
            if entry != Some(masquerade) {
                let ip = IpAddr::from(key.address.octets()).to_canonical();
                findings.push(Finding::entry("MASQUERADES", ip, entry.as_ref()));
            }
        }
        Ok(findings)
    }

    /// The masquerading interfaces (`OUTLETS`).
    ///
    /// # Errors
    /// The kernel's.
    pub fn outlets(&self) -> Result<BTreeMap<u32, Outlet>, KernelError> {
        let entries = self.maps.outlets.iter().map(|entry| entry.map(|(key, outlet)| (key.ifindex, outlet)));
        entries.collect::<Result<_, _>>().map_err(in_map("OUTLETS"))
    }

    /// Adds a masquerading interface.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write_outlet(&mut self, ifindex: u32, outlet: Outlet) -> Result<(), KernelError> {
        insert(&mut self.maps.outlets, PortKey { ifindex }, outlet).map_err(in_map("OUTLETS"))
    }

    /// Removes a masquerading interface, which ends its connections.
    ///
    /// # Errors
    /// The kernel's.
    pub fn erase_outlet(&mut self, ifindex: u32) -> Result<(), KernelError> {
        remove(&mut self.maps.outlets, &PortKey { ifindex }).map_err(in_map("OUTLETS"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_covers_a_whole_address() {
        let words = |text: &str| whole_mask(&text.parse().unwrap()).words().map(u32::from_be);
        assert_eq!(words("10.77.0.0/16"), [u32::MAX, u32::MAX, u32::MAX, 0xffff_0000]);
        assert_eq!(words("0.0.0.0/0"), [u32::MAX, u32::MAX, u32::MAX, 0]);
        assert_eq!(words("fd77::/68"), [u32::MAX, u32::MAX, 0xf000_0000, 0]);
    }
}
