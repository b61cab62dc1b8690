//! Map entries of host ports.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use shunt_agent_api::{PortMapping, Protocol};
use shunt_dataplane::abi::PortKey;
use shunt_dataplane::abi::translation::{MAPPING_MASQUERADED, Mapping, MappingKey};
use shunt_dataplane::wire::address::Address;

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

/// The key of a host port for `ip`, an address of its container. A host port of all addresses has an entry
/// per family.
pub(crate) fn key(mapping: &PortMapping, ip: IpAddr) -> MappingKey {
    let address = mapping.address().map_or_else(|| Address::from(ip).unspecified(), Address::from);
    MappingKey { address, port: mapping.host_port.into(), protocol: number(mapping.protocol), pad: 0 }
}

impl Attachment {
    /// The target of a host port: the container's first address of each of its families.
    pub(crate) fn mapped_ips(&self, mapping: &PortMapping) -> impl Iterator<Item = IpAddr> {
        let first = |is_of: fn(&IpAddr) -> bool| self.port.ips.iter().copied().find(is_of);
        let firsts = [first(IpAddr::is_ipv4), first(IpAddr::is_ipv6)];
        firsts.into_iter().flatten().filter(|ip| mapping.is_of_family(*ip))
    }

    /// The entries of its host ports.
    pub(crate) fn mapping_entries(&self) -> BTreeMap<MappingKey, Mapping> {
        let value = Mapping {
            bridge: self.port.bridge.index,
            vid: self.station_key().vid,
            mac: self.mac,
            bits: [self.subnet_bits(IpAddr::is_ipv4, 96), self.subnet_bits(IpAddr::is_ipv6, 0)],
            ..Mapping::default()
        };
        let mut entries = BTreeMap::new();
        for mapping in &self.port.mappings {
            let flags = if mapping.masquerade { MAPPING_MASQUERADED } else { 0 };
            let value = Mapping { port: mapping.container_port.into(), flags, ..value };
            for ip in self.mapped_ips(mapping) {
                let address = Address::from(ip);
                let (v4, v6) = if ip.is_ipv4() { (address, value.v6) } else { (value.v4, address) };
                entries.insert(key(mapping, ip), Mapping { v4, v6, ..value });
            }
        }
        entries
    }

    /// The prefix length of its subnet in a family plus `before`; 0 if the node is not its gateway.
    fn subnet_bits(&self, is_of: fn(&IpAddr) -> bool, before: u8) -> u8 {
        let Some(ip) = self.port.ips.iter().copied().find(is_of) else { return 0 };
        let gateways = self.port.service.gateways.iter().filter_map(|text| text.parse::<IpNet>().ok());
        let of_it = gateways.filter(|subnet| subnet.contains(&ip)).map(|subnet| before + subnet.prefix_len());
        of_it.max().unwrap_or(0)
    }
}

impl Kernel {
    /// Writes the entries of a port's host ports, which makes them reachable.
    ///
    /// # Errors
    /// The kernel's; some entries may have been written.
    pub fn write_mappings(&mut self, attachment: &Attachment) -> Result<(), KernelError> {
        for (key, mapping) in attachment.mapping_entries() {
            insert(&mut self.maps.mappings, key, mapping).map_err(in_map("MAPPINGS"))?;
        }
        Ok(())
    }

    /// Removes the entries of a port's host ports. Continues after errors.
    pub fn erase_mappings(&mut self, attachment: &Attachment) -> Vec<KernelError> {
        self.erase(attachment.mapping_entries().into_keys())
    }

    /// Removes entries of host ports that a port no longer has. Continues after errors.
    pub fn erase_old_mappings(&mut self, had: &Attachment, has: &Attachment) -> Vec<KernelError> {
        let has = has.mapping_entries();
        self.erase(had.mapping_entries().into_keys().filter(|key| !has.contains_key(key)))
    }

    fn erase(&mut self, keys: impl Iterator<Item = MappingKey>) -> Vec<KernelError> {
        let erased = keys.map(|key| remove(&mut self.maps.mappings, &key).map_err(in_map("MAPPINGS")));
        erased.filter_map(Result::err).collect()
    }

    /// Writes only whether a port has host ports.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write_mapped(&mut self, attachment: &Attachment) -> Result<(), KernelError> {
        let ifindex = attachment.port.host.index;
        let asks = self.port(ifindex)?.map(|entry| entry.asks).unwrap_or_default();
        let entry = attachment.port_entry(asks);
        insert(&mut self.maps.ports, PortKey { ifindex }, entry).map_err(in_map("PORTS"))
    }

    /// Lists missing or altered host ports.
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
