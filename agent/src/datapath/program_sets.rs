//! Program sets for open, restricted and VLAN ports and for VLAN interfaces, each loaded with its first port.
//!
//! All sets are the same code over the same maps. They differ in one word of read-only data, by which the verifier removes the code of the
//! other sets. A node without restrictions loads one set only. While somebody watches, the sets of the watched build are in force, of
//! which each program is loaded with the first interface that runs it.

use std::collections::{HashMap, HashSet};

use aya::programs::{CgroupSockAddr, SchedClassifier, Xdp};

use super::attach::cgroup::SocketProgram;
use super::attach::hook::{Program, ProgramSet};
use super::attach::xdp;
use super::loader::{self, Build, ObjectError, Programs};
use super::pins::Pins;

/// Every loaded program.
#[derive(Debug)]
pub struct ProgramSets {
    plain: Sets,
    watched: Option<Sets>,
    /// Programs of the watched build that could not be loaded: the plain ones stay.
    unwatched: HashSet<(ProgramSet, Program)>,
    /// The same of the drivers' program.
    native_is_plain: bool,
    pins: Pins,
}

/// The sets of one build.
#[derive(Debug)]
struct Sets {
    loaded: HashMap<ProgramSet, Programs>,
    build: Build,
}

impl Sets {
    fn set(&mut self, set: ProgramSet, pins: &Pins) -> Result<&mut Programs, ObjectError> {
        if !self.loaded.contains_key(&set) {
            let programs = match self.build {
                Build::Plain => loader::load_set(pins, set)?,
                Build::Watched { capturing } => loader::load_watched(pins, set, capturing)?,
            };
            self.loaded.insert(set, programs);
        }
        self.loaded.get_mut(&set).ok_or(ObjectError::Missing("of this set"))
    }

    fn id(&self, set: ProgramSet, program: Program) -> u32 {
        self.loaded.get(&set).map_or(0, |programs| programs.id(program))
    }
}

impl ProgramSets {
    /// Starts with the loaded programs for open ports.
    pub fn new(open: Programs, pins: Pins) -> Self {
        let plain = Sets { loaded: HashMap::from([(ProgramSet::Open, open)]), build: Build::Plain };
        Self { plain, watched: None, unwatched: HashSet::new(), native_is_plain: false, pins }
    }

    /// From now on the watched build is in force; nothing is attached by that. Returns what was in force, for
    /// [`ProgramSets::put_back`].
    pub(super) fn watch(&mut self, capturing: bool) -> Former {
        self.unwatched.clear();
        self.native_is_plain = false;
        let build = Build::Watched { capturing };
        Former(self.watched.replace(Sets { loaded: HashMap::new(), build }))
    }

    /// From now on the plain build is in force; nothing is attached by that.
    pub(super) fn unwatch(&mut self) {
        self.watched = None;
    }

    /// Puts in force what was so before [`ProgramSets::watch`].
    pub(super) fn put_back(&mut self, former: Former) {
        self.unwatched.clear();
        self.native_is_plain = false;
        self.watched = former.0;
    }

    /// The watched build of the open set, which has the maps; none while nobody watches.
    ///
    /// # Errors
    /// [`ObjectError`].
    pub(super) fn watched(&mut self) -> Result<Option<&mut Programs>, ObjectError> {
        self.watched.as_mut().map(|sets| sets.set(ProgramSet::Open, &self.pins)).transpose()
    }

    /// The program that is in force, loaded now if it is not yet.
    ///
    /// # Errors
    /// [`ObjectError`]; then a restricted port is not attached at all.
    pub fn get(&mut self, set: ProgramSet, program: Program) -> Result<&mut SchedClassifier, ObjectError> {
        let is_watched = !self.unwatched.contains(&(set, program));
        let sets = self.watched.as_mut().filter(|_| is_watched).unwrap_or(&mut self.plain);
        sets.set(set, &self.pins)?.get(program)
    }

    /// Loads the program that is in force. Where it is the watched one and cannot be loaded, the plain one is from now on.
    pub(super) fn fall_back(&mut self, set: ProgramSet, program: Program) {
        if self.watched.is_some() && !self.unwatched.contains(&(set, program)) {
            let loaded = self.get(set, program).map(|_| ());
            if let Err(error) = loaded {
                tracing::warn!(program = program.name(), %error, "cannot be watched");
                self.unwatched.insert((set, program));
            }
        }
    }

    /// The program of the plain build, which is pinned.
    ///
    /// # Errors
    /// As [`ProgramSets::get`].
    pub fn kept(&mut self, set: ProgramSet, program: Program) -> Result<&mut SchedClassifier, ObjectError> {
        self.plain.set(set, &self.pins)?.get(program)
    }

    /// The program of uplinks' drivers and its id, loaded now if it is not yet. Where it is the watched one and cannot be loaded, the
    /// plain one is in force from now on.
    ///
    /// # Errors
    /// [`ObjectError`].
    pub fn native(&mut self) -> Result<(&mut Xdp, u32), ObjectError> {
        let loaded = self.native_in_force().map(|_| ());
        if let Err(error) = loaded
            && self.watched.is_some()
            && !self.native_is_plain
        {
            tracing::warn!(program = xdp::NAME, %error, "cannot be watched");
            self.native_is_plain = true;
        }
        self.native_in_force()
    }

    /// The same without the plain one in its place.
    ///
    /// # Errors
    /// [`ObjectError`].
    pub(super) fn native_in_force(&mut self) -> Result<(&mut Xdp, u32), ObjectError> {
        let is_watched = !self.native_is_plain;
        let sets = self.watched.as_mut().filter(|_| is_watched).unwrap_or(&mut self.plain);
        sets.set(ProgramSet::Uplinks, &self.pins)?.native()
    }

    /// From now on the plain program of uplinks' drivers is in force, until another build is.
    pub(super) fn leave_native_plain(&mut self) {
        self.native_is_plain = true;
    }

    /// A program on sockets and its id, loaded now if it is not yet.
    ///
    /// # Errors
    /// [`ObjectError`].
    pub fn socket(&mut self, program: SocketProgram) -> Result<(&mut CgroupSockAddr, u32), ObjectError> {
        self.plain.set(ProgramSet::Open, &self.pins)?.socket(program)
    }

    /// The kernel's id of the program that is in force; 0 while it is not loaded.
    pub fn id(&self, set: ProgramSet, program: Program) -> u32 {
        match &self.watched {
            Some(sets) if !self.unwatched.contains(&(set, program)) => sets.id(set, program),
            _ => self.plain.id(set, program),
        }
    }

    /// The kernel's id of the plain program; 0 while it is not loaded.
    pub fn kept_id(&self, set: ProgramSet, program: Program) -> u32 {
        self.plain.id(set, program)
    }
}

/// The watched sets that were in force before.
#[derive(Debug)]
pub(super) struct Former(Option<Sets>);
