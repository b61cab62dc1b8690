//! Entries of limits that apply to some subnets only: `SUBNETS`.

use std::collections::BTreeSet;

use aya::maps::lpm_trie::Key;
use shunt_dataplane::abi::policer::SubnetKey;

use crate::datapath::encode::SubnetEntries;
use crate::datapath::maps::{is_absent, remove_prefix};
use crate::datapath::{Datapath, DatapathError, encode, in_map};
use crate::registry::Attachment;

impl Datapath {
    /// Writes the subnets of a port's limit, if it has any.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write_subnets(&mut self, attachment: &Attachment) -> Result<(), DatapathError> {
        for ((bits, subnet), limited) in encode::subnets(attachment) {
            let written = self.maps.subnets.insert(&Key::new(bits, subnet), limited, 0);
            written.map_err(in_map("SUBNETS"))?;
        }
        Ok(())
    }

    /// Whether all subnets of a port's limit are present.
    ///
    /// # Errors
    /// The kernel's.
    pub fn has_subnets(&self, attachment: &Attachment) -> Result<bool, DatapathError> {
        for ((bits, subnet), limited) in encode::subnets(attachment) {
            // A lookup of a missing prefix returns the shorter one, with the opposite value.
            match self.maps.subnets.get(&Key::new(bits, subnet), 0) {
                Ok(found) if found == limited => {}
                Err(error) if !is_absent(&error) => return Err(in_map("SUBNETS")(error)),
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Removes a port's entries, except those to keep. Continues after errors.
    pub fn erase_subnets(&mut self, attachment: &Attachment, stay: &SubnetEntries) -> Vec<DatapathError> {
        let gone = encode::subnets(attachment).into_keys().filter(|key| !stay.contains_key(key));
        gone.filter_map(|key| self.erase_subnet(key).err()).collect()
    }

    /// Removes every entry without an attachment.
    ///
    /// # Errors
    /// The kernel's.
    pub fn sweep_subnets<'a>(
        &mut self,
        attachments: impl Iterator<Item = &'a Attachment>,
    ) -> Result<(), DatapathError> {
        let known: BTreeSet<_> =
            attachments.flat_map(|attachment| encode::subnets(attachment).into_keys()).collect();
        let keys: Result<Vec<_>, _> = self.maps.subnets.keys().collect();
        for key in keys.map_err(in_map("SUBNETS"))? {
            let key = (key.prefix_len(), key.data());
            if !known.contains(&key) {
                self.erase_subnet(key)?;
            }
        }
        Ok(())
    }

    fn erase_subnet(&mut self, key: (u32, SubnetKey)) -> Result<(), DatapathError> {
        remove_prefix(&mut self.maps.subnets, key).map_err(in_map("SUBNETS"))
    }
}
