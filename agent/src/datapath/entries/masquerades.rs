//! Entries of masqueraded attachments: `MASQUERADES`.

use std::collections::BTreeSet;

use shunt_dataplane::abi::AddressKey;
use shunt_dataplane::abi::translation::Masquerade;

use crate::datapath::maps::{insert, lookup, remove, retain};
use crate::datapath::{Datapath, DatapathError, encode, in_map};
use crate::registry::Attachment;

impl Datapath {
    /// Makes the programs begin a port's masqueraded connections, if masquerading is theirs.
    ///
    /// # Errors
    /// The kernel's; some entries may have been written.
    pub fn write_masquerades(&mut self, attachment: &Attachment) -> Result<(), DatapathError> {
        if !self.begins_masquerading {
            return Ok(());
        }
        for (key, masquerade) in encode::masquerades(attachment) {
            insert(&mut self.maps.masquerades, key, masquerade).map_err(in_map("MASQUERADES"))?;
        }
        Ok(())
    }

    /// Leaves a port's new connections to the kernel, unless its addresses belong to another port by now.
    /// Continues after errors.
    pub fn erase_masquerades(&mut self, attachment: &Attachment) -> Vec<DatapathError> {
        self.erase_those_masquerades(encode::masquerades(attachment))
    }

    /// The same of addresses that a port no longer has.
    pub fn erase_old_masquerades(&mut self, had: &Attachment, has: &Attachment) -> Vec<DatapathError> {
        let kept: BTreeSet<AddressKey> = encode::masquerades(has).map(|(key, _)| key).collect();
        self.erase_those_masquerades(encode::masquerades(had).filter(|(key, _)| !kept.contains(key)))
    }

    fn erase_those_masquerades(
        &mut self,
        entries: impl Iterator<Item = (AddressKey, Masquerade)>,
    ) -> Vec<DatapathError> {
        let erase = |(key, ours): (AddressKey, Masquerade)| {
            let known = lookup(&self.maps.masquerades, &key)?;
            let is_ours = known.is_some_and(|known| known.ifindex == ours.ifindex);
            if is_ours { remove(&mut self.maps.masquerades, &key) } else { Ok(()) }
        };
        let erased = entries.map(erase);
        erased.filter_map(|erased| erased.map_err(in_map("MASQUERADES")).err()).collect()
    }

    /// Removes every other masqueraded address.
    ///
    /// # Errors
    /// The kernel's.
    pub fn retain_masquerades(
        &mut self,
        is_known: impl Fn(&AddressKey) -> bool,
    ) -> Result<(), DatapathError> {
        retain(&mut self.maps.masquerades, is_known).map_err(in_map("MASQUERADES"))
    }
}
