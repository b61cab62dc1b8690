//! The table of translated connections, as any thread reads it.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::BuildHasher as _;
use std::ops::ControlFlow;

use aya::maps::{HashMap as BpfHashMap, Map, MapData, MapError};
use shunt_dataplane::abi::translation::{Mapping, MappingKey, TRANSLATION_OPENER, Translation, TupleKey};

use super::entries::{Entries, open};
use super::pairs::Connection;
use crate::datapath::{Datapath, DatapathError, in_map};

/// `ASSURED`, `FLOWS` and `MAPPINGS` by descriptors of their own. A running agent never replaces a map, and the next one opens a table of its own.
pub(crate) struct Table {
    entries: Entries,
    mappings: BpfHashMap<MapData, MappingKey, Mapping>,
}

impl Table {
    /// Opens the maps by their pins.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn open(datapath: &Datapath) -> Result<Self, DatapathError> {
        let pin = |name: &str| datapath.map_pin(name);
        Ok(Self {
            entries: Entries::open(pin).map_err(in_map("FLOWS"))?,
            mappings: open(&pin("MAPPINGS"), Map::HashMap).map_err(in_map("MAPPINGS"))?,
        })
    }

    /// Shows every entry once, until `look` has seen enough. Keeps eight bytes an entry: the kernel's walk begins again where the entry that
    /// was shown last is removed, so the number of steps is limited, too.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn walk(
        &self,
        mut look: impl FnMut(&TupleKey, &Translation) -> ControlFlow<()>,
    ) -> Result<(), MapError> {
        let (hasher, mut seen) = (RandomState::new(), HashSet::new());
        for entry in self.entries.iter() {
            match entry {
                Ok((key, flow)) if seen.insert(hasher.hash_one(key)) => {
                    if look(&key, &flow).is_break() {
                        break;
                    }
                }
                Ok(_) | Err(MapError::KeyNotFound) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The connection of an opener's entry; none of the other one's, and of a half.
    pub(crate) fn connection(&self, key: &TupleKey, flow: &Translation) -> Option<Connection> {
        if flow.flags & TRANSLATION_OPENER == 0 {
            return None;
        }
        let answerer = self.entries.get(&flow.becomes.reversed(flow.becomes.domain)).ok()?;
        Connection::of(*key, *flow, answerer)
    }

    /// The host ports that exist.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn mappings(&self) -> Result<HashMap<MappingKey, Mapping>, MapError> {
        self.mappings.iter().collect()
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Table")
    }
}
