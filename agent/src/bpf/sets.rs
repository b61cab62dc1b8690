//! The programs for open ports, and those for restricted ones as soon as there is such a port.
//!
//! Both sets are the same code over the same maps; they differ in one word of read-only data, by which the verifier
//! leaves the other half out. A node without restrictions pays for one set only.

use aya::programs::SchedClassifier;

use super::hook::{Program, ProgramSet};
use super::object::{self, ObjectError, Programs};
use super::pins::Pins;

/// Every loaded program.
#[derive(Debug)]
pub struct ProgramSets {
    open: Programs,
    restricted: Option<Programs>,
    pins: Pins,
}

impl ProgramSets {
    /// With the programs for open ports, which are loaded already.
    pub fn new(open: Programs, pins: Pins) -> Self {
        Self { open, restricted: None, pins }
    }

    /// A program, loaded now if it is not yet.
    ///
    /// # Errors
    /// [`ObjectError`]; then a restricted port is not attached at all.
    pub fn get(&mut self, set: ProgramSet, program: Program) -> Result<&mut SchedClassifier, ObjectError> {
        match (set, &mut self.restricted) {
            (ProgramSet::Open, _) => self.open.get(program),
            (ProgramSet::Restricted, Some(restricted)) => restricted.get(program),
            (ProgramSet::Restricted, none) => none.insert(object::load_restricted(&self.pins)?).get(program),
        }
    }

    /// The kernel's id of a program; 0 while it is not loaded.
    pub fn id(&self, set: ProgramSet, program: Program) -> u32 {
        let programs = match set {
            ProgramSet::Open => Some(&self.open),
            ProgramSet::Restricted => self.restricted.as_ref(),
        };
        programs.map_or(0, |programs| programs.id(program))
    }
}
