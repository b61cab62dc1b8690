//! Entries of host ports: `MAPPINGS`.

use shunt_dataplane::abi::translation::{MAPPING_HEEDED, MappingKey};
use shunt_dataplane::abi::{PORT_PASSING, PortKey};

use crate::datapath::maps::{insert, remove};
use crate::datapath::{Datapath, DatapathError, encode, in_map};
use crate::registry::Attachment;

impl Datapath {
    /// Writes the entries of a port's host ports, which makes them reachable.
    ///
    /// # Errors
    /// The kernel's; some entries may have been written.
    pub fn write_mappings(&mut self, attachment: &Attachment) -> Result<(), DatapathError> {
        for (key, mapping) in encode::mappings(attachment) {
            insert(&mut self.maps.mappings, key, mapping).map_err(in_map("MAPPINGS"))?;
        }
        Ok(())
    }

    /// Whether the kernel opens a port's host ports, by the entries that there are; none where there are none.
    pub fn are_heeded(&self, attachment: &Attachment) -> Option<bool> {
        let keys = encode::mappings(attachment).into_keys();
        let entries = keys.filter_map(|key| self.maps.mappings.get(&key, 0).ok());
        entries.map(|mapping| mapping.flags & MAPPING_HEEDED != 0).reduce(|one, other| one || other)
    }

    /// Removes the entries of a port's host ports. Continues after errors.
    pub fn erase_mappings(&mut self, attachment: &Attachment) -> Vec<DatapathError> {
        self.erase(encode::mappings(attachment).into_keys())
    }

    /// Removes entries of host ports that a port no longer has. Continues after errors.
    pub fn erase_old_mappings(&mut self, had: &Attachment, has: &Attachment) -> Vec<DatapathError> {
        let has = encode::mappings(has);
        self.erase(encode::mappings(had).into_keys().filter(|key| !has.contains_key(key)))
    }

    fn erase(&mut self, keys: impl Iterator<Item = MappingKey>) -> Vec<DatapathError> {
        let erased = keys.map(|key| remove(&mut self.maps.mappings, &key).map_err(in_map("MAPPINGS")));
        erased.filter_map(Result::err).collect()
    }

    /// Writes only whether a port has host ports, and whether the kernel opens them.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write_mapped(&mut self, attachment: &Attachment) -> Result<(), DatapathError> {
        let ifindex = attachment.port.host.index;
        let known = self.port(ifindex)?.unwrap_or_default();
        let mut entry = encode::port(attachment, known.affinity);
        entry.flags |= known.flags & PORT_PASSING;
        insert(&mut self.maps.ports, PortKey { ifindex }, entry).map_err(in_map("PORTS"))?;
        self.write_station(attachment)
    }
}
