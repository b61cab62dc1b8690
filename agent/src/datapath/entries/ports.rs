//! Entries of ports and bridges: `PORTS`, `FDB`, `ADDRESSES`.

use std::collections::BTreeMap;

use aya::maps::MapError;
use shunt_dataplane::abi::{
    AFFINITY_APART, AFFINITY_FAST, AFFINITY_LEARN, AFFINITY_LOOKUP, AddressKey, NO_OWNER, Owner, PORT_AWAY,
    PORT_CHECKED, PORT_PASSING, PORT_SHARED, Port, PortKey, STATION_APART, STATION_MOVED, Station,
    StationKey,
};

use crate::datapath::maps::{insert, lookup, remove};
use crate::datapath::{Datapath, DatapathError, encode, in_map};
use crate::registry::{Attachment, Bridge};

/// How a port's packets choose their path ([`Port::affinity`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowAffinity {
    /// No flow takes the kernel's path.
    Fast = AFFINITY_FAST as isize,
    /// Some flows do; the programs look them up.
    Lookup = AFFINITY_LOOKUP as isize,
    /// Unknown flows take the kernel's path while the agent reads conntrack.
    Learn = AFFINITY_LEARN as isize,
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
    pub fn write_port(
        &mut self,
        attachment: &Attachment,
        affinity: FlowAffinity,
    ) -> Result<(), DatapathError> {
        self.write_policer(attachment)?;
        let mut entry = encode::port(attachment, affinity as u32);
        let known = self.port(attachment.port.host.index)?;
        entry.flags |=
            known.map_or(0, |known| known.flags & PORT_AWAY) | self.freshness(attachment, known)?;
        if known.is_some_and(is_apart) {
            entry.affinity = AFFINITY_APART;
        }
        insert(&mut self.maps.ports, encode::port_key(attachment.port.host.index), entry)
            .map_err(in_map("PORTS"))?;
        if entry.flags & PORT_SHARED != 0 {
            // Its programs do not see what it says to groups.
            self.end_sparing(entry.bridge)?;
        }
        self.write_station(attachment)?;
        self.complete_addresses(attachment)?;
        self.write_masquerades(attachment)?;
        self.write_membership(attachment)
    }

    /// Writes the owner entries of a port's addresses, unless somebody has one who may ([`Datapath::may_own`]).
    ///
    /// # Errors
    /// The kernel's.
    pub fn complete_addresses(&mut self, attachment: &Attachment) -> Result<(), DatapathError> {
        let own = Owner { ifindex: attachment.port.host.index };
        for key in encode::address_keys(attachment) {
            let owner = self.owner(&key)?;
            if !self.may_own(attachment, owner)? {
                insert(&mut self.maps.addresses, key, own).map_err(in_map("ADDRESSES"))?;
            }
        }
        Ok(())
    }

    /// Whether an address of an attachment may have this owner: an open port's may have moved to another open one, or to a station
    /// that the programs do not know.
    ///
    /// # Errors
    /// The kernel's.
    pub fn may_own(&self, attachment: &Attachment, owner: Option<Owner>) -> Result<bool, DatapathError> {
        let Some(Owner { ifindex }) = owner else { return Ok(false) };
        if ifindex == attachment.port.host.index {
            return Ok(true);
        }
        if attachment.port.restrictions.is_checked() {
            return Ok(false);
        }
        let bridge = attachment.port.bridge.index;
        let takes = |port: Port| port.flags & PORT_CHECKED == 0 && port.bridge == bridge;
        Ok(ifindex == NO_OWNER || self.port(ifindex)?.is_some_and(takes))
    }

    /// Writes the station of a port's container. One that the programs have heard elsewhere stays moved, and one whose port is apart is.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write_station(&mut self, attachment: &Attachment) -> Result<(), DatapathError> {
        let (key, mut station) = (encode::station_key(attachment), encode::station(attachment));
        let known = self.station(&key)?.filter(|known| known.ifindex == station.ifindex);
        station.flags |= known.map_or(0, |known| known.flags & STATION_MOVED);
        if key.vid == 0 && self.port(station.ifindex)?.is_some_and(is_apart) {
            station.flags |= STATION_APART;
        }
        insert(&mut self.maps.stations, key, station).map_err(in_map("FDB"))
    }

    /// Changes only a port's `affinity`. The programs change it, too, from [`FlowAffinity::Fast`] to [`FlowAffinity::Lookup`]: the
    /// written value never looks up less. A port that is apart stays so.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write_affinity(&mut self, ifindex: u32, affinity: FlowAffinity) -> Result<(), DatapathError> {
        let Some(entry) = self.port(ifindex)? else { return Ok(()) };
        if entry.affinity == affinity as u32 || is_apart(entry) {
            return Ok(());
        }
        let entry = Port { affinity: affinity as u32, ..entry };
        insert(&mut self.maps.ports, PortKey { ifindex }, entry).map_err(in_map("PORTS"))
    }

    /// Rewrites a port's entry while traffic flows. The programs may change `affinity` concurrently: the written
    /// value never looks up less.
    ///
    /// # Errors
    /// The kernel's.
    pub fn rewrite_port(&mut self, attachment: &Attachment) -> Result<(), DatapathError> {
        let known = self.port(attachment.port.host.index)?;
        let is = |entry: &Port| encode::as_written(*entry) == encode::port(attachment, entry.affinity);
        match known {
            // A limit of another rate leaves the entry as it is.
            Some(entry) if is(&entry) => {
                self.write_policer(attachment)?;
                self.write_station(attachment)
            }
            Some(Port { affinity: AFFINITY_LEARN, .. }) => self.write_port(attachment, FlowAffinity::Learn),
            _ => self.write_port(attachment, FlowAffinity::Lookup),
        }
    }

    /// Writes the entries of a bridge.
    ///
    /// # Errors
    /// The kernel's; some entries may have been written.
    pub fn write_bridge(&mut self, bridge: &Bridge) -> Result<(), DatapathError> {
        let key = PortKey { ifindex: bridge.link.index };
        let mut entry = encode::bridge_port(bridge);
        entry.flags |= self.port(bridge.link.index)?.map_or(0, |known| known.flags & PORT_PASSING);
        insert(&mut self.maps.ports, key, entry).map_err(in_map("PORTS"))?;
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

const fn is_apart(port: Port) -> bool {
    port.affinity == AFFINITY_APART
}
