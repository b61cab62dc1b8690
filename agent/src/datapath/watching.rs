//! Puts the watched programs in the place of the plain ones, and takes them away again.
//!
//! Each program is replaced in place: a tcx or XDP link by `bpf_link_update`, a filter of clsact by one request. No packet is without a
//! program meanwhile, and both builds judge alike over the same maps. Watched programs are never pinned: the next start of an agent
//! replaces them, like those of any other build.

use aya::maps::{Array, HashMap, MapData, PerCpuArray, RingBuf};
use shunt_agent_api::ProgramMode;
use shunt_dataplane::abi::watch::{Watch, WatchBudget};

use super::attach::hook::Hook;
use super::attach::{Attached, xdp};
use super::loader::ObjectError;
use super::{Datapath, DatapathError};

/// The maps of the watched programs.
pub struct WatchMaps {
    /// What is told, under the key 0.
    pub watch: Array<MapData, Watch>,
    /// The interfaces that are watched.
    pub ports: HashMap<MapData, u32, u32>,
    /// What was told and what was not.
    pub budgets: PerCpuArray<MapData, WatchBudget>,
    /// The packets.
    pub packets: RingBuf<MapData>,
}

impl Datapath {
    /// Puts the watched programs in force, for drops only or for every packet. Returns their maps.
    ///
    /// # Errors
    /// The kernel refuses a program; then the plain ones are in force.
    pub fn watch(&mut self, capturing: bool) -> Result<WatchMaps, DatapathError> {
        let path = self.pins.root().to_path_buf();
        self.pins.create_watch().map_err(|source| DatapathError::Pins { path, source })?;
        let _none = self.programs.watch(capturing);
        let maps = self.watch_maps();
        let outcome = maps.and_then(|maps| self.replace_all().map(|()| maps));
        if outcome.is_err() {
            self.unwatch();
        }
        outcome
    }

    /// The same where they are in force for the other kind; the maps stay.
    ///
    /// # Errors
    /// The kernel refuses a program; then what was in force is so still.
    pub fn watch_anew(&mut self, capturing: bool) -> Result<(), DatapathError> {
        let former = self.programs.watch(capturing);
        let replaced = self.replace_all();
        if replaced.is_err() {
            self.programs.put_back(former);
            self.replace_or_warn();
        }
        replaced
    }

    /// Puts the plain programs in force. What cannot be replaced is repaired like any other program that is not the agent's.
    pub fn unwatch(&mut self) {
        self.programs.unwatch();
        self.replace_or_warn();
        if let Err(error) = self.pins.remove_watch() {
            tracing::warn!(%error, "cannot remove the pins of the watched programs' maps");
        }
    }

    fn watch_maps(&mut self) -> Result<WatchMaps, DatapathError> {
        let programs = self.programs.watched()?.ok_or(ObjectError::Missing("that is watched"))?;
        let taken = (programs.map("WATCH"), programs.map("WATCHED_PORTS"));
        let (watch, ports) = (taken.0.map_err(ObjectError::from)?, taken.1.map_err(ObjectError::from)?);
        let budgets = programs.map("WATCH_BUDGETS").map_err(ObjectError::from)?;
        let packets = programs.map("WATCHED").map_err(ObjectError::from)?;
        Ok(WatchMaps { watch, ports, budgets, packets })
    }

    fn replace_or_warn(&mut self) {
        if let Err(error) = self.replace_all() {
            tracing::warn!(%error, "a program was not replaced");
        }
    }

    /// Replaces every attached program by the one that is in force; all are tried.
    fn replace_all(&mut self) -> Result<(), DatapathError> {
        let attached: Vec<Attached> = self.attached.values().cloned().collect();
        let mut outcome = Ok(());
        for Attached { hook, mode } in &attached {
            outcome = outcome.and(self.replace(hook, *mode));
        }
        for index in self.natives.keys().copied().collect::<Vec<_>>() {
            outcome = outcome.and(self.replace_native(index));
        }
        outcome
    }

    /// A link or filter that is gone is left to the repairs.
    fn replace(&mut self, hook: &Hook, mode: ProgramMode) -> Result<(), DatapathError> {
        let replaced = match mode {
            ProgramMode::Tcx => self.adopt_link(hook),
            _ => self.adopt_filter(hook),
        };
        match replaced {
            Err(error @ DatapathError::Object(_)) => Err(error),
            // Its interface is going.
            Err(error) if !self.is_there(hook) => {
                tracing::debug!(%hook, %error, "not replaced");
                Ok(())
            }
            replaced => replaced.map(|_| ()),
        }
    }

    /// Where the link is lost with that, the plain program is attached if it can be; else the next repair attaches one.
    fn replace_native(&mut self, index: u32) -> Result<(), DatapathError> {
        let replaced = self.attach_native_in_force(index);
        if matches!(replaced, Err(DatapathError::Native { .. })) {
            self.programs.leave_native_plain();
            if self.attach_native_in_force(index).is_err() {
                self.natives.remove(&index);
            }
        }
        replaced
    }

    fn attach_native_in_force(&mut self, index: u32) -> Result<(), DatapathError> {
        let pin = self.pins.nic(index);
        let (program, id) = self.programs.native_in_force()?;
        let attached = xdp::attach(program, index, &pin);
        attached.map_err(|source| DatapathError::Native { ifname: format!("ifindex {index}"), source })?;
        self.natives.insert(index, id);
        Ok(())
    }

    fn is_there(&mut self, hook: &Hook) -> bool {
        self.has_any(&[hook.program], hook.ifindex, &hook.ifname).unwrap_or(true)
    }
}
