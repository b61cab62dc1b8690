//! Checks and restores the pins of maps and programs, which the next agent takes over.

use std::io;
use std::path::PathBuf;

use aya::maps::MapData;
use aya::programs::ProgramError;

use super::attach::hook::{Program, ProgramSet};
use super::loader::ObjectError;
use super::{Datapath, DatapathError, in_map};

impl Datapath {
    /// Lists maps and programs without a pin.
    pub fn missing_pins(&self) -> Vec<PathBuf> {
        let maps = self.map_ids.iter().map(|(name, _)| self.pins.map(name));
        let programs = self.loaded().map(|(set, program)| self.pins.program(set, program));
        maps.chain(programs).filter(|pin| !pin.exists()).collect()
    }

    /// Restores missing pins and directories.
    ///
    /// # Errors
    /// The kernel's or the file system's.
    pub fn pin_again(&mut self) -> Result<(), DatapathError> {
        let root = self.pins.root().to_path_buf();
        self.pins.recreate().map_err(|source| DatapathError::Pins { path: root, source })?;
        for (name, id) in &self.map_ids {
            let pin = self.pins.map(name);
            if !pin.exists() {
                let map = MapData::from_id(*id).map_err(in_map(name))?;
                map.pin(&pin).map_err(|error| unpinnable(pin, error))?;
            }
        }
        for (set, program) in self.loaded().collect::<Vec<_>>() {
            let pin = self.pins.program(set, program);
            if !pin.exists() {
                let pinned = self.programs.kept(set, program)?.pin(&pin);
                pinned.map_err(|error| ObjectError::Program {
                    name: program.name(),
                    source: ProgramError::from(io::Error::other(error)),
                })?;
            }
        }
        Ok(())
    }

    /// Every loaded program.
    fn loaded(&self) -> impl Iterator<Item = (ProgramSet, Program)> {
        let all = ProgramSet::ALL.into_iter().flat_map(|set| Program::ALL.map(|program| (set, program)));
        all.filter(|(set, program)| self.programs.kept_id(*set, *program) != 0)
    }
}

fn unpinnable(path: PathBuf, error: impl std::error::Error + Send + Sync + 'static) -> DatapathError {
    DatapathError::Pins { path, source: io::Error::other(error) }
}
