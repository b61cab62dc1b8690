//! Entries of bridges' uplinks: `PORTS`, `TAGGED`, `UPLINKS`, `MEMBERS`.

use crate::datapath::maps::{insert, remove};
use crate::datapath::{Datapath, DatapathError, encode, in_map};
use crate::registry::Uplink;

impl Datapath {
    /// Writes the entries of an uplink with this MTU.
    ///
    /// # Errors
    /// The kernel's; some entries may have been written.
    pub fn write_uplink(&mut self, uplink: &Uplink, mtu: u32) -> Result<(), DatapathError> {
        insert(&mut self.maps.tagged, encode::port_key(uplink.link.index), encode::every_vlan())
            .map_err(in_map("TAGGED"))?;
        insert(&mut self.maps.ports, encode::port_key(uplink.link.index), encode::uplink_port(uplink))
            .map_err(in_map("PORTS"))?;
        self.write_learning(uplink, mtu)?;
        self.write_flooding(uplink)
    }

    /// Writes whether an uplink forwards or is blocked.
    ///
    /// # Errors
    /// The kernel's; some entries may have been written.
    pub fn write_forwarding(&mut self, uplink: &Uplink) -> Result<(), DatapathError> {
        insert(&mut self.maps.ports, encode::port_key(uplink.link.index), encode::uplink_port(uplink))
            .map_err(in_map("PORTS"))?;
        self.write_flooding(uplink)
    }

    /// A blocked uplink is not in the flood list.
    fn write_flooding(&mut self, uplink: &Uplink) -> Result<(), DatapathError> {
        let (bridge, ifindex) = (uplink.bridge.index, uplink.link.index);
        if uplink.blocked {
            return self.leave(bridge, ifindex).map_err(in_map("MEMBERS"));
        }
        self.join(bridge, ifindex)
    }

    /// Removes them. Continues after errors.
    pub fn erase_uplink(&mut self, uplink: &Uplink) -> Vec<DatapathError> {
        let mut errors = self.erase_membership(uplink.bridge.index, uplink.link.index);
        errors.extend(
            remove(&mut self.maps.ports, &encode::port_key(uplink.link.index)).map_err(in_map("PORTS")).err(),
        );
        errors.extend(self.erase_learning(uplink));
        self.maps.clear_drops(uplink.link.index);
        errors
    }
}
