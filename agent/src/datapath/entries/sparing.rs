//! What the programs suppress of frames to groups: on which bridges, and whose announcements (`stages::suppress`).

use shunt_dataplane::abi::{AddressKey, PORT_FOREIGN, PORT_FRESH, PORT_SPARING, Port, PortKey, mention};

use crate::datapath::maps::insert;
use crate::datapath::{Datapath, DatapathError, encode, in_map};
use crate::registry::Attachment;

impl Datapath {
    /// Has the programs suppress what nobody needs on a bridge, from its first port on.
    ///
    /// # Errors
    /// The kernel's.
    pub fn begin_sparing(&mut self, bridge: u32) -> Result<(), DatapathError> {
        self.change_flags(bridge, |flags| flags | PORT_SPARING)
    }

    /// Ends that, until the bridge has its first port again.
    ///
    /// # Errors
    /// The kernel's.
    pub fn end_sparing(&mut self, bridge: u32) -> Result<(), DatapathError> {
        self.change_flags(bridge, |flags| flags & !PORT_SPARING)
    }

    fn change_flags(&mut self, ifindex: u32, change: impl Fn(u32) -> u32) -> Result<(), DatapathError> {
        let Some(entry) = self.port(ifindex)? else { return Ok(()) };
        let flags = change(entry.flags);
        if flags == entry.flags {
            return Ok(());
        }
        insert(&mut self.maps.ports, PortKey { ifindex }, Port { flags, ..entry }).map_err(in_map("PORTS"))
    }

    /// [`PORT_FRESH`] of a port that is written: as it is; of a new one whether nobody on its bridge has had, or asked for, any of its
    /// addresses. From now on they count as known.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn freshness(
        &mut self,
        attachment: &Attachment,
        known: Option<Port>,
    ) -> Result<u32, DatapathError> {
        // Between its ADD's first steps and this one a container's end counts as foreign.
        if let Some(known) = known.filter(|known| known.flags & PORT_FOREIGN == 0) {
            return Ok(known.flags & PORT_FRESH);
        }
        let (mut has_any, mut are_new) = (false, true);
        for key in encode::address_keys(attachment) {
            has_any = true;
            are_new &= self.mention(&key)?;
        }
        Ok(if has_any && are_new { PORT_FRESH } else { 0 })
    }

    /// Has everybody hear what a port announces that is given other addresses.
    ///
    /// # Errors
    /// The kernel's.
    pub fn end_freshness(&mut self, attachment: &Attachment) -> Result<(), DatapathError> {
        for key in encode::address_keys(attachment) {
            self.mention(&key)?;
        }
        self.change_flags(attachment.port.host.index, |flags| flags & !PORT_FRESH)
    }

    /// Notes that somebody may know an address. Returns whether nobody could before.
    fn mention(&mut self, key: &AddressKey) -> Result<bool, DatapathError> {
        let (entry, byte) = mention(key);
        let mut known = self.maps.mentions.get(&entry, 0).map_err(in_map("MENTIONS"))?;
        let is_new = known[byte] == 0;
        if is_new {
            // What a program sets in the same entry at this very moment is lost: one in 65,536 would have to be in it.
            known[byte] = 1;
            self.maps.mentions.set(entry, known, 0).map_err(in_map("MENTIONS"))?;
        }
        Ok(is_new)
    }
}
