//! Map entries of host ports.

use std::net::IpAddr;

use dataplane::abi::PortKey;
use dataplane::abi::translation::{MAPPING_MASQUERADED, Mapping, MappingKey};
use dataplane::address::Address;
use shunt_agent_api::{PortMapping, Protocol};

use super::{Finding, Kernel, KernelError, in_map};
use crate::bpf::maps::{insert, lookup, remove};
use crate::registry::Attachment;

/// IP protocol number (IANA "Assigned Internet Protocol Numbers").
pub(crate) const fn number(protocol: Protocol) -> u8 {
    match protocol {
        Protocol::Tcp => 6,
        Protocol::Udp => 17,
        Protocol::Sctp => 132,
    }
}

impl Attachment {
    /// The entries of its host ports.
    pub(crate) fn mapping_entries(&self) -> impl Iterator<Item = (MappingKey, Mapping)> {
        let first = |is_wanted: fn(&IpAddr) -> bool| {
            self.port.ips.iter().copied().find(is_wanted).map(Address::from).unwrap_or_default()
        };
        let value = Mapping {
            v4: first(IpAddr::is_ipv4),
            v6: first(IpAddr::is_ipv6),
            bridge: self.port.bridge.index,
            vid: self.station_key().vid,
            mac: self.mac,
            ..Mapping::default()
        };
        self.port.mappings.iter().map(move |mapping| {
            let PortMapping { protocol, host_ip, host_port, container_port, masquerade } = *mapping;
            let address = host_ip.map(Address::from).unwrap_or_default();
            let key = MappingKey { address, port: host_port.into(), protocol: number(protocol), pad: 0 };
            let flags = if masquerade { MAPPING_MASQUERADED } else { 0 };
            (key, Mapping { port: container_port.into(), flags, ..value })
        })
    }
}

impl Kernel {
    /// Writes the entries of a port's host ports: from here on they lead to it.
    ///
    /// # Errors
    /// The kernel's; some entries may have been written.
    pub fn write_mappings(&mut self, attachment: &Attachment) -> Result<(), KernelError> {
        for (key, mapping) in attachment.mapping_entries() {
            insert(&mut self.maps.mappings, key, mapping).map_err(in_map("MAPPINGS"))?;
        }
        Ok(())
    }

    /// Takes the entries of a port's host ports away. Goes on past errors.
    pub fn erase_mappings(&mut self, attachment: &Attachment) -> Vec<KernelError> {
        self.erase(attachment.mapping_entries().map(|(key, _)| key).collect())
    }

    /// Takes the entries away that a port had and has no more. Goes on past errors.
    pub fn erase_old_mappings(&mut self, had: &Attachment, has: &Attachment) -> Vec<KernelError> {
        let has: Vec<_> = has.mapping_entries().map(|(key, _)| key).collect();
        let had = had.mapping_entries().map(|(key, _)| key);
        self.erase(had.filter(|key| !has.contains(key)).collect())
    }

    fn erase(&mut self, keys: Vec<MappingKey>) -> Vec<KernelError> {
        let erased = keys.iter().map(|key| remove(&mut self.maps.mappings, key).map_err(in_map("MAPPINGS")));
        erased.filter_map(Result::err).collect()
    }

    /// Writes whether host ports lead to a port, and nothing else of it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write_mapped(&mut self, attachment: &Attachment) -> Result<(), KernelError> {
        let ifindex = attachment.port.host.index;
        let asks = self.port(ifindex)?.map(|entry| entry.asks).unwrap_or_default();
        let entry = attachment.port_entry(asks);
        insert(&mut self.maps.ports, PortKey { ifindex }, entry).map_err(in_map("PORTS"))
    }

    /// Which of a port's host ports are missing or altered.
    ///
    /// # Errors
    /// The kernel cannot say.
    pub fn audit_mappings(&self, attachment: &Attachment) -> Result<Vec<Finding>, KernelError> {
        let mut findings = Vec::new();
        for (key, mapping) in attachment.mapping_entries() {
            let entry = lookup(&self.maps.mappings, &key).map_err(in_map("MAPPINGS"))?;
            if entry != Some(mapping) {
                findings.push(Finding::entry("MAPPINGS", key.port.number(), entry.as_ref()));
            }
        }
        Ok(findings)
    }
}
