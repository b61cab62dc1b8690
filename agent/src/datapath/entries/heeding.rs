//! What flows are worth that others' rules have let through (`HEEDING`).

use shunt_dataplane::abi::Heeding;

use crate::datapath::{Datapath, DatapathError, in_map};

impl Datapath {
    /// What the programs go by.
    ///
    /// # Errors
    /// The kernel's.
    pub fn heeding(&self) -> Result<Heeding, DatapathError> {
        self.maps.heeding.get(&0, 0).map_err(in_map("HEEDING"))
    }

    /// Writes it. Where something changes, all flows are asked for again.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write_heeding(&mut self, lease: u64, flags: u32) -> Result<(), DatapathError> {
        let known = self.heeding()?;
        if (known.lease, known.flags) == (lease, flags) {
            return Ok(());
        }
        let now = Heeding { lease, flags, generation: known.generation.wrapping_add(1) };
        self.maps.heeding.set(0, now, 0).map_err(in_map("HEEDING"))
    }
}
