//! Program sets for open, restricted and VLAN ports and for VLAN interfaces, each loaded with its first port.
//!
//! All sets are the same code over the same maps. They differ in one word of read-only data, by which the verifier removes the code of the
//! other sets. A node without restrictions loads one set only.

use aya::programs::{CgroupSockAddr, SchedClassifier, Xdp};

use super::attach::cgroup::SocketProgram;
use super::attach::hook::{Program, ProgramSet};
use super::loader::{self, ObjectError, Programs};
use super::pins::Pins;

/// Every loaded program.
#[derive(Debug)]
pub struct ProgramSets {
    open: Programs,
    restricted: Option<Programs>,
    members: Option<Programs>,
    interfaces: Option<Programs>,
    uplinks: Option<Programs>,
    pins: Pins,
}

impl ProgramSets {
    /// Starts with the loaded programs for open ports.
    pub fn new(open: Programs, pins: Pins) -> Self {
        Self { open, restricted: None, members: None, interfaces: None, uplinks: None, pins }
    }

    /// A program, loaded now if it is not yet.
    ///
    /// # Errors
    /// [`ObjectError`]; then a restricted port is not attached at all.
    pub fn get(&mut self, set: ProgramSet, program: Program) -> Result<&mut SchedClassifier, ObjectError> {
        let programs = match set {
            ProgramSet::Open => return self.open.get(program),
            ProgramSet::Restricted => &mut self.restricted,
            ProgramSet::Members => &mut self.members,
            ProgramSet::Interfaces => &mut self.interfaces,
            ProgramSet::Uplinks => &mut self.uplinks,
        };
        match programs {
            Some(programs) => programs.get(program),
            none => none.insert(loader::load_set(&self.pins, set)?).get(program),
        }
    }

    /// The program of uplinks' drivers and its id, loaded now if it is not yet.
    ///
    /// # Errors
    /// [`ObjectError`].
    pub fn native(&mut self) -> Result<(&mut Xdp, u32), ObjectError> {
        match &mut self.uplinks {
            Some(uplinks) => uplinks.native(),
            none => none.insert(loader::load_set(&self.pins, ProgramSet::Uplinks)?).native(),
        }
    }

    /// A program on sockets and its id, loaded now if it is not yet.
    ///
    /// # Errors
    /// [`ObjectError`].
    pub fn socket(&mut self, program: SocketProgram) -> Result<(&mut CgroupSockAddr, u32), ObjectError> {
        self.open.socket(program)
    }

    /// The kernel's id of a program; 0 while it is not loaded.
    pub fn id(&self, set: ProgramSet, program: Program) -> u32 {
        let programs = match set {
            ProgramSet::Open => Some(&self.open),
            ProgramSet::Restricted => self.restricted.as_ref(),
            ProgramSet::Members => self.members.as_ref(),
            ProgramSet::Interfaces => self.interfaces.as_ref(),
            ProgramSet::Uplinks => self.uplinks.as_ref(),
        };
        programs.map_or(0, |programs| programs.id(program))
    }
}
