//! `ASSURED` and `FLOWS` as the programs see them: what stands in the one is found before what stands in the other.

use std::path::{Path, PathBuf};

use aya::Pod;
use aya::maps::{HashMap, Map, MapData, MapError};
use shunt_dataplane::abi::translation::{Translation, TupleKey};

use super::pairs::Flows;
use crate::datapath::room::MOST_ENTRIES;

/// Update flag: only where there is no entry (`BPF_NOEXIST`, linux/bpf.h).
const NOEXIST: u64 = 1;

/// Both maps, by descriptors of their own.
pub(crate) struct Entries {
    assured: HashMap<MapData, TupleKey, Translation>,
    flows: HashMap<MapData, TupleKey, Translation>,
}

/// The entries of each, as one look found them.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub assured: Flows,
    pub flows: Flows,
}

impl Entries {
    /// Opens both by their pins.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn open(pin: impl Fn(&str) -> PathBuf) -> Result<Self, MapError> {
        Ok(Self {
            assured: open(&pin("ASSURED"), Map::HashMap)?,
            flows: open(&pin("FLOWS"), Map::LruHashMap)?,
        })
    }

    /// An entry.
    ///
    /// # Errors
    /// The kernel's; there may be none.
    pub(crate) fn get(&self, key: &TupleKey) -> Result<Translation, MapError> {
        self.assured.get(key, 0).or_else(|_| self.flows.get(key, 0))
    }

    /// Every entry, the assured ones first; one that is in both comes twice. A removed entry makes the kernel's walk begin again, so the number of
    /// steps is limited.
    pub(super) fn iter(&self) -> impl Iterator<Item = Result<(TupleKey, Translation), MapError>> {
        let most = 2 * MOST_ENTRIES as usize;
        self.assured.iter().take(most).chain(self.flows.iter().take(most))
    }

    /// Reads all of both.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn read(&self) -> Result<Found, MapError> {
        Ok(Found { assured: read(&self.assured)?, flows: read(&self.flows)? })
    }

    /// Makes an entry assured that is not.
    ///
    /// # Errors
    /// The kernel's: it is assured already, or there is no room.
    pub(crate) fn assure(&mut self, key: &TupleKey, value: &Translation) -> Result<(), MapError> {
        self.assured.insert(key, value, NOEXIST)
    }

    /// Copies an assured entry for those who know `FLOWS` only, as it is now. Whether it is still there.
    pub(super) fn copy_assured(&mut self, key: &TupleKey) -> bool {
        let Ok(flow) = self.assured.get(key, 0) else { return false };
        self.flows.insert(key, flow, 0).is_ok()
    }

    /// Makes an entry one of those that make room. Whether it was assured.
    pub(super) fn release(&mut self, key: &TupleKey) -> bool {
        self.assured.remove(key).is_ok()
    }

    /// Removes an entry: whether it was assured, and whether it stood in `FLOWS`.
    pub(crate) fn remove(&mut self, key: &TupleKey) -> (bool, bool) {
        (self.assured.remove(key).is_ok(), self.flows.remove(key).is_ok())
    }
}

impl Found {
    /// Every entry once.
    pub(super) fn all(&self) -> Flows {
        let mut all = self.flows.clone();
        all.extend(&self.assured);
        all
    }
}

fn read(map: &HashMap<MapData, TupleKey, Translation>) -> Result<Flows, MapError> {
    let mut found = Flows::new();
    for entry in map.iter().take(2 * MOST_ENTRIES as usize) {
        match entry {
            Ok((key, flow)) => _ = found.insert(key, flow),
            Err(MapError::KeyNotFound) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// Opens a map by its pin.
///
/// # Errors
/// The kernel's.
pub(super) fn open<K: Pod, V: Pod>(
    pin: &Path,
    kind: fn(MapData) -> Map,
) -> Result<HashMap<MapData, K, V>, MapError> {
    HashMap::try_from(kind(MapData::from_pin(pin)?))
}
