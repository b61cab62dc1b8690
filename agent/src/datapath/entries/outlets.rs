//! Entries of the addresses by which masqueraded connections leave: `OUTLETS`, and `SOURCES`, which chooses among them.

use std::collections::BTreeMap;

use aya::maps::lpm_trie::Key;
use shunt_dataplane::abi::AddressKey;
use shunt_dataplane::abi::translation::{Outlet, SourceKey};
use shunt_dataplane::wire::address::Address;

use crate::datapath::maps::{insert, remove, remove_prefix};
use crate::datapath::{Datapath, DatapathError, in_map};

/// Entries of `OUTLETS`.
pub type OutletEntries = BTreeMap<AddressKey, Outlet>;

/// Entries of `SOURCES`, by the length of their prefix, in bits, and the prefix.
pub type SourceEntries = BTreeMap<(u32, SourceKey), Address>;

impl Datapath {
    /// The addresses.
    ///
    /// # Errors
    /// The kernel's.
    pub fn outlets(&self) -> Result<OutletEntries, DatapathError> {
        self.maps.outlets.iter().collect::<Result<_, _>>().map_err(in_map("OUTLETS"))
    }

    /// Adds an address.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write_outlet(&mut self, key: AddressKey, outlet: Outlet) -> Result<(), DatapathError> {
        insert(&mut self.maps.outlets, key, outlet).map_err(in_map("OUTLETS"))
    }

    /// Removes an address, which ends its connections.
    ///
    /// # Errors
    /// The kernel's.
    pub fn erase_outlet(&mut self, key: &AddressKey) -> Result<(), DatapathError> {
        remove(&mut self.maps.outlets, key).map_err(in_map("OUTLETS"))
    }

    /// What chooses among the addresses.
    ///
    /// # Errors
    /// The kernel's.
    pub fn sources(&self) -> Result<SourceEntries, DatapathError> {
        let entries = self.maps.sources.iter().map(|entry| {
            let (key, source) = entry?;
            Ok(((key.prefix_len(), key.data()), source))
        });
        entries.collect::<Result<_, _>>().map_err(in_map("SOURCES"))
    }

    /// Adds or changes a choice.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write_source(
        &mut self,
        (bits, key): (u32, SourceKey),
        source: Address,
    ) -> Result<(), DatapathError> {
        self.maps.sources.insert(&Key::new(bits, key), source, 0).map_err(in_map("SOURCES"))
    }

    /// Removes a choice; it may be gone already.
    ///
    /// # Errors
    /// The kernel's.
    pub fn erase_source(&mut self, key: (u32, SourceKey)) -> Result<(), DatapathError> {
        remove_prefix(&mut self.maps.sources, key).map_err(in_map("SOURCES"))
    }
}
