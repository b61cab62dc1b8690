//! Map entries of limits that apply to some subnets only (`SUBNETS`).

use std::collections::{BTreeMap, BTreeSet};

use aya::maps::lpm_trie::Key;
use shunt_dataplane::abi::policer::{SLOT_BITS, SUBNET_BITS, SubnetKey};
use shunt_dataplane::wire::address::Address;

use super::{Kernel, KernelError, in_map};
use crate::bpf::maps::is_absent;
use crate::registry::Attachment;
use crate::subnets::Subnets;

/// Prefixes by length and address, and whether they are limited.
pub type Entries = BTreeMap<(u32, SubnetKey), u32>;

/// The entries of a port; none if its limit applies to all packets.
pub fn entries(attachment: &Attachment) -> Entries {
    let Some(subnets) = Subnets::of_sent(&attachment.port.bandwidth) else { return Entries::new() };
    let slot = attachment.slot;
    let limited = u32::from(subnets.limited);
    let rest = ((SLOT_BITS, SubnetKey { slot, ..SubnetKey::default() }), 1 - limited);
    let prefixes = subnets.prefixes.iter().map(|prefix| {
        let bits = SUBNET_BITS - u32::from(prefix.max_prefix_len()) + u32::from(prefix.prefix_len());
        ((bits, SubnetKey { slot, address: Address::from(prefix.network()) }), limited)
    });
    prefixes.chain([rest]).collect()
}

impl Kernel {
    /// Writes the subnets of a port's limit, if it has any.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn write_subnets(&mut self, attachment: &Attachment) -> Result<(), KernelError> {
        for ((bits, subnet), limited) in entries(attachment) {
            let written = self.maps.subnets.insert(&Key::new(bits, subnet), limited, 0);
            written.map_err(in_map("SUBNETS"))?;
        }
        Ok(())
    }

    /// Whether all subnets of a port's limit are present.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn has_subnets(&self, attachment: &Attachment) -> Result<bool, KernelError> {
        for ((bits, subnet), limited) in entries(attachment) {
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
    pub fn erase_subnets(&mut self, attachment: &Attachment, stay: &Entries) -> Vec<KernelError> {
        let gone = entries(attachment).into_keys().filter(|key| !stay.contains_key(key));
        gone.filter_map(|key| self.erase_subnet(key).err()).collect()
    }

    /// Removes every entry without an attachment.
    ///
    /// # Errors
    /// The kernel's.
    pub fn sweep_subnets<'a>(
        &mut self,
        attachments: impl Iterator<Item = &'a Attachment>,
    ) -> Result<(), KernelError> {
        let known: BTreeSet<_> = attachments.flat_map(|attachment| entries(attachment).into_keys()).collect();
        let keys: Result<Vec<_>, _> = self.maps.subnets.keys().collect();
        for key in keys.map_err(in_map("SUBNETS"))? {
            let key = (key.prefix_len(), key.data());
            if !known.contains(&key) {
                self.erase_subnet(key)?;
            }
        }
        Ok(())
    }

    fn erase_subnet(&mut self, (bits, subnet): (u32, SubnetKey)) -> Result<(), KernelError> {
        match self.maps.subnets.remove(&Key::new(bits, subnet)) {
            Err(error) if !is_absent(&error) => Err(in_map("SUBNETS")(error)),
            _ => Ok(()),
        }
    }
}
