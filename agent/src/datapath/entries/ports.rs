//! Entries of ports and bridges: `PORTS`, `FDB`, `ADDRESSES`.

use std::collections::BTreeMap;

use aya::maps::MapError;
use shunt_dataplane::abi::{
    AddressKey, Owner, PATH_ASK, PATH_FAST, PATH_LEARN, Port, PortKey, Station, StationKey,
};

use crate::datapath::maps::{insert, lookup, remove};
use crate::datapath::{Datapath, DatapathError, encode, in_map};
use crate::registry::{Attachment, Bridge};

/// How a port's packets choose their path ([`Port::asks`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowAffinity {
    /// No flow takes the kernel's path.
    Fast = PATH_FAST as isize,
    /// Some flows do; the programs look them up.
    Ask = PATH_ASK as isize,
    /// Unknown flows take the kernel's path while the agent reads conntrack.
    Learn = PATH_LEARN as isize,
}

impl Datapath {
    /// An interface's entry in `PORTS`.
    ///
    /// # Errors
    /// The kernel's.
    pub fn port(&self, ifindex: u32) -> Result<Option<Port>, DatapathError> {
        lookup(&self.maps.ports, &PortKey { ifindex }).map_err(in_map("PORTS"))
    }

    /// The station under a key ([`station_key`]).
    ///
    /// # Errors
    /// The kernel's.
    pub fn station(&self, key: &StationKey) -> Result<Option<Station>, DatapathError> {
        lookup(&self.maps.stations, key).map_err(in_map("FDB"))
    }

    /// Writes the entries of a port.
    ///
    /// # Errors
    /// The kernel's; some entries may have been written.
    pub fn write_port(&mut self, attachment: &Attachment, asks: FlowAffinity) -> Result<(), DatapathError> {
        self.write_policer(attachment)?;
        let entry = encode::port(attachment, asks as u32);
        insert(&mut self.maps.ports, encode::port_key(attachment.port.host.index), entry)
            .map_err(in_map("PORTS"))?;
        self.write_station(attachment)?;
        self.write_addresses(attachment)?;
        self.write_masquerades(attachment)?;
        self.write_membership(attachment)
    }

    /// Writes the owner entries of a port's addresses.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write_addresses(&mut self, attachment: &Attachment) -> Result<(), DatapathError> {
        let owner = Owner { ifindex: attachment.port.host.index };
        for key in encode::address_keys(attachment) {
            insert(&mut self.maps.addresses, key, owner).map_err(in_map("ADDRESSES"))?;
        }
        Ok(())
    }

    /// Writes the station of a port's container.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write_station(&mut self, attachment: &Attachment) -> Result<(), DatapathError> {
        insert(&mut self.maps.stations, encode::station_key(attachment), encode::station(attachment))
            .map_err(in_map("FDB"))
    }

    /// Changes only a port's `asks`. The programs change it, too, from [`FlowAffinity::Fast`] to [`FlowAffinity::Ask`]: the
    /// written value never asks less.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write_asks(&mut self, ifindex: u32, asks: FlowAffinity) -> Result<(), DatapathError> {
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
    pub fn rewrite_port(&mut self, attachment: &Attachment) -> Result<(), DatapathError> {
        let known = self.port(attachment.port.host.index)?;
        let is = |entry: &Port| *entry == encode::port(attachment, entry.asks);
        match known {
            Some(entry) if is(&entry) => self.write_station(attachment),
            Some(Port { asks: PATH_LEARN, .. }) => self.write_port(attachment, FlowAffinity::Learn),
            _ => self.write_port(attachment, FlowAffinity::Ask),
        }
    }

    /// Writes the entries of a bridge.
    ///
    /// # Errors
    /// The kernel's; some entries may have been written.
    pub fn write_bridge(&mut self, bridge: &Bridge) -> Result<(), DatapathError> {
        let key = PortKey { ifindex: bridge.link.index };
        insert(&mut self.maps.ports, key, encode::bridge_port(bridge)).map_err(in_map("PORTS"))?;
        self.write_bridge_station(bridge)
    }

    /// Writes the station of the node on a bridge.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write_bridge_station(&mut self, bridge: &Bridge) -> Result<(), DatapathError> {
        let Some(key) = encode::bridge_station_key(bridge) else { return Ok(()) };
        insert(&mut self.maps.stations, key, encode::bridge_station(bridge)).map_err(in_map("FDB"))
    }

    /// Removes the entries of a port, except those that belong to another port by now. Continues after
    /// errors.
    pub fn erase_port(&mut self, attachment: &Attachment) -> Vec<DatapathError> {
        let ifindex = attachment.port.host.index;
        let mut errors = match attachment.is_flooded_to() {
            true => self.erase_membership(attachment.port.bridge.index, ifindex),
            false => Vec::new(),
        };
        errors.extend(self.erase_masquerades(attachment));
        for key in encode::address_keys(attachment) {
            errors.extend(self.erase_address(key, ifindex).err());
        }
        errors.extend(
            self.erase_station(encode::station_key(attachment), ifindex).map_err(in_map("FDB")).err(),
        );
        errors.extend(self.erase_subnets(attachment, &BTreeMap::new()));
        let key = encode::port_key(attachment.port.host.index);
        let forgotten = remove(&mut self.maps.link_locals, &key);
        errors.extend(forgotten.map_err(in_map("LINK_LOCALS")).err());
        let erased = remove(&mut self.maps.ports, &key);
        errors.extend(erased.map_err(in_map("PORTS")).err());
        self.maps.clear_drops(ifindex);
        errors
    }

    /// The owner of an address.
    ///
    /// # Errors
    /// The kernel's.
    pub fn owner(&self, key: &AddressKey) -> Result<Option<Owner>, DatapathError> {
        lookup(&self.maps.addresses, key).map_err(in_map("ADDRESSES"))
    }

    /// Removes an address entry, unless it belongs to another port by now.
    ///
    /// # Errors
    /// The kernel's.
    pub fn erase_address(&mut self, key: AddressKey, ifindex: u32) -> Result<(), DatapathError> {
        let erased = lookup(&self.maps.addresses, &key).and_then(|owner| match owner {
            Some(owner) if owner.ifindex == ifindex => remove(&mut self.maps.addresses, &key),
            _ => Ok(()),
        });
        erased.map_err(in_map("ADDRESSES"))
    }

    /// Removes the entries of a bridge. Continues after errors.
    pub fn erase_bridge(&mut self, bridge: &Bridge) -> Vec<DatapathError> {
        let ifindex = bridge.link.index;
        let station =
            encode::bridge_station_key(bridge).map_or(Ok(()), |key| self.erase_station(key, ifindex));
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
    ) -> Result<(), DatapathError> {
        let entry = encode::foreign_port(bridge, leads_out);
        insert(&mut self.maps.ports, PortKey { ifindex }, entry).map_err(in_map("PORTS"))
    }

    /// Takes that away.
    ///
    /// # Errors
    /// The kernel's.
    pub fn erase_foreign_port(&mut self, ifindex: u32) -> Result<(), DatapathError> {
        remove(&mut self.maps.ports, &PortKey { ifindex }).map_err(in_map("PORTS"))
    }

    /// Removes the bridge's station before its MAC address changes.
    ///
    /// # Errors
    /// The kernel's.
    pub fn erase_bridge_station(&mut self, bridge: &Bridge) -> Result<(), DatapathError> {
        let Some(key) = encode::bridge_station_key(bridge) else { return Ok(()) };
        self.erase_station(key, bridge.link.index).map_err(in_map("FDB"))
    }

    fn erase_station(&mut self, key: StationKey, ifindex: u32) -> Result<(), MapError> {
        match lookup(&self.maps.stations, &key)? {
            Some(station) if station.ifindex == ifindex => remove(&mut self.maps.stations, &key),
            _ => Ok(()),
        }
    }
}
