//! What flows are worth that others' rules have let through (`HEEDING`).

use std::sync::{Mutex, PoisonError};

use aya::maps::{Array, MapData, MapError};
use shunt_dataplane::abi::Heeding;

/// `HEEDING`, which two threads write: whoever decides what is heeded, and whoever hears that rules have changed.
pub struct HeedingEntry(Mutex<Array<MapData, Heeding>>);

impl HeedingEntry {
    pub(crate) fn new(map: Array<MapData, Heeding>) -> Self {
        Self(Mutex::new(map))
    }

    /// What the programs go by.
    ///
    /// # Errors
    /// The kernel's.
    pub fn read(&self) -> Result<Heeding, MapError> {
        let map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        map.get(&0, 0)
    }

    /// Writes it. Where something changes, all flows are asked for again.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write(&self, lease: u64, flags: u32) -> Result<(), MapError> {
        self.change(|known| {
            let is_other = (known.lease, known.flags) != (lease, flags);
            is_other.then_some(Heeding { lease, flags, ..known })
        })
    }

    /// Has all flows asked for again.
    ///
    /// # Errors
    /// The kernel's.
    pub fn ask_again(&self) -> Result<(), MapError> {
        self.change(Some)
    }

    /// Writes what becomes of what is known, as the next generation.
    fn change(&self, change: impl FnOnce(Heeding) -> Option<Heeding>) -> Result<(), MapError> {
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = map.get(&0, 0)?;
        let Some(wanted) = change(known) else { return Ok(()) };
        let wanted = Heeding { generation: known.generation.wrapping_add(1), ..wanted };
        map.set(0, wanted, 0)
    }
}
