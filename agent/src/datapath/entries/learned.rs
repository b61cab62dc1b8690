//! Map entries of stations that were learned behind uplinks.

use std::collections::BTreeMap;

use shunt_dataplane::abi::learning::{Learned, Learning};
use shunt_dataplane::abi::{PortKey, StationKey};

use crate::datapath::encode::port_key;
use crate::datapath::maps::{insert, lookup, remove, retain};
use crate::datapath::{Datapath, DatapathError, in_map};
use crate::registry::Uplink;

impl Datapath {
    /// Every station that was learned.
    ///
    /// # Errors
    /// The kernel's.
    pub fn learned(&self) -> Result<Vec<(StationKey, Learned)>, DatapathError> {
        // A removed key restarts the walk, which then returns some stations twice.
        let stations: BTreeMap<_, _> =
            self.maps.learned.iter().collect::<Result<_, _>>().map_err(in_map("LEARNED"))?;
        Ok(stations.into_iter().collect())
    }

    /// Forgets a station.
    ///
    /// # Errors
    /// The kernel's.
    pub fn forget_learned(&mut self, key: &StationKey) -> Result<(), DatapathError> {
        remove(&mut self.maps.learned, key).map_err(in_map("LEARNED"))
    }

    /// What has been learned by an uplink.
    ///
    /// # Errors
    /// The kernel's.
    pub fn learning(&self, uplink: &Uplink) -> Result<Option<Learning>, DatapathError> {
        lookup(&self.maps.uplinks, &port_key(uplink.link.index)).map_err(in_map("UPLINKS"))
    }

    /// Enables learning on an uplink with this MTU, or disables it on one from which its bridge learns nothing. Known stations are kept, unless their MTU or counter slot has changed.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write_learning(&mut self, uplink: &Uplink, mtu: u32) -> Result<(), DatapathError> {
        if uplink.deaf {
            return remove(&mut self.maps.uplinks, &port_key(uplink.link.index)).map_err(in_map("UPLINKS"));
        }
        let known = self.learning(uplink)?;
        let learning = Learning { mtu, slot: uplink.slot, ..known.unwrap_or_default() };
        if known == Some(learning) {
            return Ok(());
        }
        insert(&mut self.maps.uplinks, port_key(uplink.link.index), learning).map_err(in_map("UPLINKS"))?;
        self.forget_beyond(uplink)
    }

    /// Writes the number of stations of an uplink. The programs count concurrently; the number may be off
    /// until the next call.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write_held(&mut self, uplink: &Uplink, held: u64) -> Result<(), DatapathError> {
        match self.learning(uplink)? {
            Some(known) if known.held != held => {
                let learning = Learning { held, ..known };
                insert(&mut self.maps.uplinks, port_key(uplink.link.index), learning)
                    .map_err(in_map("UPLINKS"))
            }
            _ => Ok(()),
        }
    }

    /// Removes an uplink and its stations. Continues after errors.
    pub(super) fn erase_learning(&mut self, uplink: &Uplink) -> Vec<DatapathError> {
        let mut errors = Vec::new();
        errors.extend(
            remove(&mut self.maps.uplinks, &port_key(uplink.link.index)).map_err(in_map("UPLINKS")).err(),
        );
        errors.extend(self.forget_beyond(uplink).err());
        errors
    }

    /// Removes the stations of an uplink.
    ///
    /// # Errors
    /// The kernel's; some may have been forgotten.
    pub fn forget_beyond(&mut self, uplink: &Uplink) -> Result<(), DatapathError> {
        self.retain_learned(|_, known| known.station.ifindex != uplink.link.index)
    }

    /// Removes stations of interfaces that are no longer uplinks; `is_uplink` takes the bridge and the
    /// interface.
    ///
    /// # Errors
    /// The kernel's; some may have been forgotten.
    pub fn sweep_learned(&mut self, is_uplink: impl Fn(u32, u32) -> bool) -> Result<(), DatapathError> {
        self.retain_learned(|key, known| is_uplink(key.bridge, known.station.ifindex))
    }

    /// The same of the uplinks themselves.
    ///
    /// # Errors
    /// The kernel's; some may have been forgotten.
    pub fn sweep_uplinks(&mut self, is_uplink: impl Fn(u32) -> bool) -> Result<(), DatapathError> {
        retain(&mut self.maps.uplinks, |key: &PortKey| is_uplink(key.ifindex)).map_err(in_map("UPLINKS"))
    }

    fn retain_learned(&mut self, keep: impl Fn(&StationKey, &Learned) -> bool) -> Result<(), DatapathError> {
        let stations = self.learned()?;
        for (key, _) in stations.iter().filter(|(key, known)| !keep(key, known)) {
            self.forget_learned(key)?;
        }
        Ok(())
    }
}
