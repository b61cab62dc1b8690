//! Map entries of the interfaces at which the kernel filters sources (`REVERSE_PATHS`).

use std::collections::BTreeMap;

use shunt_dataplane::abi::{PortKey, ReversePath};

use crate::datapath::maps::{by_ifindex, insert, remove};
use crate::datapath::{Datapath, DatapathError, in_map};

impl Datapath {
    /// The interfaces by ifindex.
    ///
    /// # Errors
    /// The kernel's.
    pub fn reverse_paths(&self) -> Result<BTreeMap<u32, ReversePath>, DatapathError> {
        by_ifindex(&self.maps.reverse_paths).map_err(in_map("REVERSE_PATHS"))
    }

    /// Has the programs filter the sources of what comes in by an interface.
    ///
    /// # Errors
    /// The kernel's; the map may be full.
    pub fn write_reverse_path(&mut self, ifindex: u32, path: ReversePath) -> Result<(), DatapathError> {
        insert(&mut self.maps.reverse_paths, PortKey { ifindex }, path).map_err(in_map("REVERSE_PATHS"))
    }

    /// Has the programs take every source there.
    ///
    /// # Errors
    /// The kernel's.
    pub fn erase_reverse_path(&mut self, ifindex: u32) -> Result<(), DatapathError> {
        remove(&mut self.maps.reverse_paths, &PortKey { ifindex }).map_err(in_map("REVERSE_PATHS"))
    }
}
