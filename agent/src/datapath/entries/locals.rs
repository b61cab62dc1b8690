//! Map entries of the node's own addresses.

use std::net::IpAddr;

use shunt_dataplane::abi::translation::{Local, LocalKey};

use crate::datapath::maps::{insert, remove, retain};
use crate::datapath::{Datapath, DatapathError, in_map};

impl Datapath {
    /// Makes an address one of the node's.
    ///
    /// # Errors
    /// The kernel's; the map may be full.
    pub fn write_local(&mut self, ip: IpAddr) -> Result<(), DatapathError> {
        let key = LocalKey { address: ip.into() };
        insert(&mut self.maps.locals, key, Local::default()).map_err(in_map("LOCALS"))
    }

    /// Forgets an address of the node.
    ///
    /// # Errors
    /// The kernel's.
    pub fn erase_local(&mut self, ip: IpAddr) -> Result<(), DatapathError> {
        remove(&mut self.maps.locals, &LocalKey { address: ip.into() }).map_err(in_map("LOCALS"))
    }

    /// Removes every other address of the node.
    ///
    /// # Errors
    /// The kernel's.
    pub fn retain_locals(&mut self, is_local: impl Fn(&LocalKey) -> bool) -> Result<(), DatapathError> {
        retain(&mut self.maps.locals, is_local).map_err(in_map("LOCALS"))
    }
}
