//! Map entries of ports and bridges.

use std::collections::BTreeMap;
use std::net::IpAddr;

use aya::maps::MapError;
use shunt_agent_api::{BridgePort, IngressPolicy, Restrictions};
use shunt_dataplane::abi::vlan::VID_ANY;
use shunt_dataplane::abi::{
    AddressKey, Owner, PATH_ASK, PATH_FAST, PATH_LEARN, PORT_ALONE, PORT_GUARDED, PORT_IP_CHECK,
    PORT_ISOLATED, PORT_MAC_CHECK, PORT_MAPPED, PORT_MASQUERADED, PORT_POLICED, PORT_SAME_BRIDGE,
    PORT_SHARED, PORT_STORM, PORT_STRANGER, PORT_SUBNETS, PORT_WIRE, PORT_WITHIN, Port, PortKey,
    STATION_ALONE, STATION_HOST, STATION_ISOLATED, STATION_PEER_UP, STATION_QUEUED, STATION_SAME_BRIDGE,
    Station, StationKey,
};
use shunt_dataplane::wire::address::{Address, Mac};

use super::{Kernel, KernelError, in_map, members};
use crate::bpf::maps::{insert, lookup, remove};
use crate::registry::{Attachment, Bridge};
use crate::subnets::Subnets;

/// How a port's packets choose their path ([`Port::asks`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// No flow takes the kernel's path.
    Fast = PATH_FAST as isize,
    /// Some flows do; the programs look them up.
    Ask = PATH_ASK as isize,
    /// Unknown flows take the kernel's path while the agent reads conntrack.
    Learn = PATH_LEARN as isize,
}

/// The bit where it holds.
const fn flag(holds: bool, bit: u32) -> u32 {
    if holds { bit } else { 0 }
}

/// The bits of an ingress policy: no packets through another bridge, or from no container.
const fn ingress_flags(policy: IngressPolicy, same_bridge: u32, alone: u32) -> u32 {
    match policy {
        IngressPolicy::Open => 0,
        IngressPolicy::SameBridge => same_bridge,
        IngressPolicy::Isolated => same_bridge | alone,
    }
}

/// The key of a port's station.
pub fn station_key(port: &BridgePort, mac: Mac) -> StationKey {
    let (vid, mac) = match port.vlan {
        // The one interface of its VLAN there.
        Some(vlan) if vlan.within => (vlan.id, Mac::default()),
        Some(vlan) => (vlan.id, mac),
        None if port.restrictions.vlans.is_some() => (VID_ANY, mac),
        None => (0, mac),
    };
    StationKey { bridge: port.bridge.index, vid, mac }
}

impl Attachment {
    pub(super) fn port_key(&self) -> PortKey {
        PortKey { ifindex: self.port.host.index }
    }

    pub(crate) fn port_entry(&self, asks: u32) -> Port {
        let Restrictions { isolated, mac_check, ip_check, ingress, storm, .. } = &self.port.restrictions;
        let flags = flag(self.others.filters, PORT_SHARED)
            | flag(*isolated, PORT_ISOLATED)
            | flag(*mac_check, PORT_MAC_CHECK)
            | flag(*ip_check, PORT_IP_CHECK)
            | ingress_flags(*ingress, PORT_SAME_BRIDGE, PORT_ALONE)
            | flag(storm.is_some(), PORT_STORM)
            | flag(!self.port.mappings.is_empty(), PORT_MAPPED)
            | flag(self.is_masqueraded(), PORT_MASQUERADED)
            | flag(self.is_guarded(), PORT_GUARDED)
            | flag(super::limit::policer(&self.port).is_some(), PORT_POLICED)
            | flag(Subnets::of_sent(&self.port.bandwidth).is_some(), PORT_SUBNETS);
        let (vid, membership) = self.untagged();
        let flags = flags | membership;
        Port { bridge: self.port.bridge.index, slot: self.slot, asks, flags, vid, mac: self.mac }
    }

    pub(crate) fn station_key(&self) -> StationKey {
        station_key(&self.port, self.mac)
    }

    pub(super) fn station(&self) -> Station {
        Station {
            ifindex: self.port.host.index,
            slot: self.slot,
            mtu: self.port.mtu,
            flags: flag(self.peer.is_up(), STATION_PEER_UP)
                | flag(self.others.queue || self.is_parent, STATION_QUEUED)
                | flag(self.port.restrictions.isolated, STATION_ISOLATED)
                | ingress_flags(self.port.restrictions.ingress, STATION_SAME_BRIDGE, STATION_ALONE),
        }
    }

    /// The keys in `ADDRESSES`. For a port without untagged frames the VLAN of its addresses is unknown and
    /// only used by its source guard.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = &IpAddr> {
        let Restrictions { vlans, ip_check, .. } = &self.port.restrictions;
        let is_placed = vlans.as_ref().is_none_or(|vlans| vlans.untagged.is_some());
        let is_asked_for = self.port.vlan.is_none() && (is_placed || *ip_check);
        let ips = if is_asked_for { &self.port.ips[..] } else { &[] };
        let lent = if *ip_check { &self.lent[..] } else { &[] };
        ips.iter().chain(lent)
    }

    /// The same, as `ADDRESSES` has them.
    pub(crate) fn address_keys(&self) -> impl Iterator<Item = AddressKey> {
        let (bridge, vid) = (self.port.bridge.index, self.untagged().0);
        self.addresses().map(move |ip| AddressKey::new(bridge, vid, Address::from(*ip)))
    }

    /// The PVID and the VLAN flags of its entry in `PORTS`.
    fn untagged(&self) -> (u16, u32) {
        match self.port.vlan {
            Some(vlan) => (vlan.id, flag(vlan.within, PORT_WITHIN)),
            None => members::of_port(self.port.restrictions.vlans.as_ref()),
        }
    }
}

impl Bridge {
    pub(crate) fn port_entry(&self) -> Port {
        let mac = self.link.mac.map(Mac::new).unwrap_or_default();
        Port { bridge: self.link.index, slot: self.slot, asks: PATH_FAST, flags: 0, vid: 0, mac }
    }

    pub(crate) fn station_key(&self) -> Option<StationKey> {
        Some(StationKey { bridge: self.link.index, vid: 0, mac: Mac::new(self.link.mac?) })
    }

    pub(super) fn station(&self) -> Station {
        Station { ifindex: self.link.index, slot: self.slot, mtu: self.link.mtu, flags: STATION_HOST }
    }
}

impl Kernel {
    /// An interface's entry in `PORTS`.
    ///
    /// # Errors
    /// The kernel's.
    pub fn port(&self, ifindex: u32) -> Result<Option<Port>, KernelError> {
        lookup(&self.maps.ports, &PortKey { ifindex }).map_err(in_map("PORTS"))
    }

    /// The station under a key ([`station_key`]).
    ///
    /// # Errors
    /// The kernel's.
    pub fn station(&self, key: &StationKey) -> Result<Option<Station>, KernelError> {
        lookup(&self.maps.stations, key).map_err(in_map("FDB"))
    }

    /// Writes the entries of a port.
    ///
    /// # Errors
    /// The kernel's; some entries may have been written.
    pub fn write_port(&mut self, attachment: &Attachment, asks: Asks) -> Result<(), KernelError> {
        self.write_policer(attachment)?;
        let entry = attachment.port_entry(asks as u32);
        insert(&mut self.maps.ports, attachment.port_key(), entry).map_err(in_map("PORTS"))?;
        self.write_station(attachment)?;
        self.write_addresses(attachment)?;
        self.write_masquerades(attachment)?;
        self.write_membership(attachment)
    }

    /// Writes the owner entries of a port's addresses.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write_addresses(&mut self, attachment: &Attachment) -> Result<(), KernelError> {
        let owner = Owner { ifindex: attachment.port.host.index };
        for key in attachment.address_keys() {
            insert(&mut self.maps.addresses, key, owner).map_err(in_map("ADDRESSES"))?;
        }
        Ok(())
    }

    /// Writes the station of a port's container.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write_station(&mut self, attachment: &Attachment) -> Result<(), KernelError> {
        insert(&mut self.maps.stations, attachment.station_key(), attachment.station()).map_err(in_map("FDB"))
    }

    /// Changes only a port's `asks`. The programs change it, too, from [`Asks::Fast`] to [`Asks::Ask`]: the
    /// written value never asks less.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write_asks(&mut self, ifindex: u32, asks: Asks) -> Result<(), KernelError> {
        let Some(entry) = self.port(ifindex)? else { return Ok(()) };
        if entry.asks == asks as u32 {
            return Ok(());
        }
        let entry = Port { asks: asks as u32, ..entry };
        insert(&mut self.maps.ports, PortKey { ifindex }, entry).map_err(in_map("PORTS"))
    }

    /// Rewrites a port's entry while traffic flows. The programs may change `asks` concurrently: the written
    /// value never asks less.
    ///
    /// # Errors
    /// The kernel's.
    pub fn rewrite_port(&mut self, attachment: &Attachment) -> Result<(), KernelError> {
        let known = self.port(attachment.port.host.index)?;
        let is = |entry: &Port| *entry == attachment.port_entry(entry.asks);
        match known {
            Some(entry) if is(&entry) => self.write_station(attachment),
            Some(Port { asks: PATH_LEARN, .. }) => self.write_port(attachment, Asks::Learn),
            _ => self.write_port(attachment, Asks::Ask),
        }
    }

    /// Writes the entries of a bridge.
    ///
    /// # Errors
    /// The kernel's; some entries may have been written.
    pub fn write_bridge(&mut self, bridge: &Bridge) -> Result<(), KernelError> {
        let key = PortKey { ifindex: bridge.link.index };
        insert(&mut self.maps.ports, key, bridge.port_entry()).map_err(in_map("PORTS"))?;
        self.write_bridge_station(bridge)
    }

    /// Writes the station of the node on a bridge.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write_bridge_station(&mut self, bridge: &Bridge) -> Result<(), KernelError> {
        let Some(key) = bridge.station_key() else { return Ok(()) };
        insert(&mut self.maps.stations, key, bridge.station()).map_err(in_map("FDB"))
    }

    /// Removes the entries of a port, except those that belong to another port by now. Continues after
    /// errors.
    pub fn erase_port(&mut self, attachment: &Attachment) -> Vec<KernelError> {
        let ifindex = attachment.port.host.index;
        let mut errors = match attachment.is_flooded_to() {
            true => self.erase_membership(attachment.port.bridge.index, ifindex),
            false => Vec::new(),
        };
        errors.extend(self.erase_masquerades(attachment));
        for key in attachment.address_keys() {
            errors.extend(self.erase_address(key, ifindex).err());
        }
        errors.extend(self.erase_station(attachment.station_key(), ifindex).map_err(in_map("FDB")).err());
        errors.extend(self.erase_subnets(attachment, &BTreeMap::new()));
        let erased = remove(&mut self.maps.ports, &attachment.port_key());
        errors.extend(erased.map_err(in_map("PORTS")).err());
        self.maps.clear_drops(ifindex);
        errors
    }

    /// Removes an address entry, unless it belongs to another port by now.
    ///
    /// # Errors
    /// The kernel's.
    pub fn erase_address(&mut self, key: AddressKey, ifindex: u32) -> Result<(), KernelError> {
        let erased = lookup(&self.maps.addresses, &key).and_then(|owner| match owner {
            Some(owner) if owner.ifindex == ifindex => remove(&mut self.maps.addresses, &key),
            _ => Ok(()),
        });
        erased.map_err(in_map("ADDRESSES"))
    }

    /// Removes the entries of a bridge. Continues after errors.
    pub fn erase_bridge(&mut self, bridge: &Bridge) -> Vec<KernelError> {
        let ifindex = bridge.link.index;
        let station = bridge.station_key().map_or(Ok(()), |key| self.erase_station(key, ifindex));
        let port = remove(&mut self.maps.ports, &PortKey { ifindex });
        self.maps.clear_drops(ifindex);
        [station.map_err(in_map("FDB")).err(), port.map_err(in_map("PORTS")).err()]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Registers a foreign port of a bridge, and whether it leads out of the node.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write_foreign_port(
        &mut self,
        ifindex: u32,
        bridge: u32,
        leads_out: bool,
    ) -> Result<(), KernelError> {
        let flags = PORT_STRANGER | flag(leads_out, PORT_WIRE);
        let entry = Port { bridge, flags, ..Port::default() };
        insert(&mut self.maps.ports, PortKey { ifindex }, entry).map_err(in_map("PORTS"))
    }

    /// Takes that away.
    ///
    /// # Errors
    /// The kernel's.
    pub fn erase_foreign_port(&mut self, ifindex: u32) -> Result<(), KernelError> {
        remove(&mut self.maps.ports, &PortKey { ifindex }).map_err(in_map("PORTS"))
    }

    /// Removes the bridge's station before its MAC address changes.
    ///
    /// # Errors
    /// The kernel's.
    pub fn erase_bridge_station(&mut self, bridge: &Bridge) -> Result<(), KernelError> {
        let Some(key) = bridge.station_key() else { return Ok(()) };
        self.erase_station(key, bridge.link.index).map_err(in_map("FDB"))
    }

    fn erase_station(&mut self, key: StationKey, ifindex: u32) -> Result<(), MapError> {
        match lookup(&self.maps.stations, &key)? {
            Some(station) if station.ifindex == ifindex => remove(&mut self.maps.stations, &key),
            _ => Ok(()),
        }
    }
}
