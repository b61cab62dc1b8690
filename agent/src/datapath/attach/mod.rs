//! Attaches, takes over and detaches programs.
//!
//! A tcx link wherever the kernel has tcx: it is pinned, and leaves the interface's ingress qdisc to a shaper later in the chain. A clsact
//! filter elsewhere.

mod attached;
pub mod cgroup;
pub mod clsact;
pub mod hook;
mod sockets;
pub mod tcx;
mod way;
pub mod xdp;

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use aya::programs::TcAttachType;
use shunt_agent_api::{Interface, ProgramMode};

pub(super) use self::attached::Attached;
pub use self::way::Way;

use self::hook::{Hook, Program, ProgramSet};
use super::pins::PinnedHook;
use super::{Datapath, DatapathError};

/// How long the kernel may take to free an unpinned link.
const LINGERING: Duration = Duration::from_secs(10);

/// How long to wait for it where packets would be dropped otherwise.
const PARTING: Duration = Duration::from_millis(500);

impl Datapath {
    /// Attaches a program.
    ///
    /// # Errors
    /// The kernel refuses; then nothing new stays attached.
    pub fn attach(&mut self, hook: &Hook) -> Result<(), DatapathError> {
        self.attach_before(hook, |_| true)
    }

    /// Attaches all programs of an interface without programs of the agent.
    ///
    /// # Errors
    /// The kernel refuses one; then those before it stay attached.
    pub fn attach_all(&mut self, hooks: &[Hook]) -> Result<(), DatapathError> {
        // Other pins with this ifindex belong to an earlier interface.
        let is_ours = |next| hooks.iter().any(|other| other.program == next);
        hooks.iter().try_for_each(|hook| self.attach_before(hook, is_ours))
    }

    /// Attaches a program in front of the agent's programs that run behind it, if these are attached.
    fn attach_before(
        &mut self,
        hook: &Hook,
        has_behind: impl Fn(Program) -> bool,
    ) -> Result<(), DatapathError> {
        match self.way {
            Way::Tcx => self.attach_link(hook, has_behind),
            Way::Clsact => self.attach_filter(hook),
        }
    }

    /// Replaces an earlier agent's program, and moves it to the current mode. Returns false if none was
    /// attached.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn adopt(&mut self, hook: &Hook) -> Result<bool, DatapathError> {
        self.programs.fall_back(hook.set, hook.program);
        let (is_link, is_filter) = (self.adopt_link(hook)?, self.adopt_filter(hook)?);
        match (self.way, is_link, is_filter) {
            (_, false, false) => return Ok(false),
            (Way::Tcx, false, true) => {
                self.attach_link(hook, |_| true).and_then(|()| self.detach_filter(hook))?;
            }
            (Way::Tcx, true, true) => self.detach_filter(hook)?,
            (Way::Clsact, true, false) => self.attach_filter(hook).and_then(|()| self.detach_link(hook))?,
            (Way::Clsact, true, true) => self.detach_link(hook)?,
            (Way::Tcx, true, false) | (Way::Clsact, false, true) => {}
        }
        let mode = match self.way {
            Way::Tcx => ProgramMode::Tcx,
            Way::Clsact => ProgramMode::Clsact,
        };
        self.note(hook, mode);
        Ok(true)
    }

    /// Puts a program in force, whether an earlier agent attached it, somebody detached it, or it is new.
    /// Returns false if it was not attached before.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn ensure(&mut self, hook: &Hook) -> Result<bool, DatapathError> {
        let was_attached = self.adopt(hook)?;
        if !was_attached {
            self.attach(hook)?;
        }
        Ok(was_attached)
    }

    /// Detaches a program, however it was attached; it, or its interface, may be gone already.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn detach(&mut self, hook: &Hook) -> Result<(), DatapathError> {
        let known = self.attached.remove(&(hook.program, hook.ifindex));
        self.detach_link(hook)?;
        if known.is_some_and(|known| known.mode == ProgramMode::Tcx) {
            Ok(())
        } else {
            self.detach_filter(hook)
        }
    }

    /// The same, and waits until the program is detached: some kernels detach a moment after the pin is
    /// removed (`bpf_link_put_deferred`, kernel/bpf/syscall.c), and a program that fails closed drops
    /// everything once its entry is removed.
    ///
    /// # Errors
    /// The kernel's, after a second attempt: the program may still be attached.
    pub fn detach_and_wait(&mut self, hook: &Hook) -> Result<(), DatapathError> {
        if self.detach(hook).is_err() {
            self.detach(hook)?;
        }
        let begun = Instant::now();
        while tcx::is_there(hook) && begun.elapsed() < PARTING {
            thread::sleep(Duration::from_micros(200));
        }
        Ok(())
    }

    /// Forgets a program whose interface is about to be deleted. Returns the pin, to be removed after the
    /// interface.
    pub fn abandon(&mut self, hook: &Hook) -> PathBuf {
        self.attached.remove(&(hook.program, hook.ifindex));
        self.pins.link(hook.program, hook.ifindex)
    }

    /// How a program is attached.
    pub fn mode(&self, hook: &Hook) -> ProgramMode {
        let known = self.attached.get(&(hook.program, hook.ifindex));
        known.map_or(ProgramMode::Clsact, |known| known.mode)
    }

    fn note(&mut self, hook: &Hook, mode: ProgramMode) {
        self.attached.insert((hook.program, hook.ifindex), Attached { hook: hook.clone(), mode });
    }

    /// Queries the kernel whether this agent's program is attached.
    ///
    /// # Errors
    /// The kernel cannot say.
    pub fn is_attached(&mut self, hook: &Hook) -> Result<bool, DatapathError> {
        let id = self.program_id(hook);
        match self.mode(hook) {
            ProgramMode::Tcx => tcx::is_attached(hook, id).map_err(|source| in_link(hook, source)),
            _ => clsact::find(&mut self.route, hook)
                .map(|filter| filter.is_some_and(|filter| filter.program == id))
                .map_err(|source| in_filter(hook, source)),
        }
    }

    /// Whether any of an interface's programs is not attached, with one question for each direction. A failed query is not a missing
    /// program: its link is probably gone.
    pub fn has_lost_any(&mut self, port: &Interface, programs: &[(Program, ProgramSet)]) -> bool {
        let [mut ingress, mut egress] = [None, None];
        programs.iter().any(|&(program, set)| {
            let known = self.attached.get(&(program, port.index));
            if known.is_none_or(|known| known.mode != ProgramMode::Tcx) {
                let hook = Hook { program, set, ifindex: port.index, ifname: port.name.clone() };
                return matches!(self.is_attached(&hook), Ok(false));
            }
            let (direction, id) = (program.direction(), self.programs.id(set, program));
            let found = if matches!(direction, TcAttachType::Ingress) { &mut ingress } else { &mut egress };
            let found = found.get_or_insert_with(|| tcx::programs_at(port.index, direction));
            found.as_ref().is_ok_and(|found| !found.contains(&id))
        })
    }

    /// Whether a program's link is pinned, be it dead.
    pub fn is_pinned(&self, hook: &Hook) -> bool {
        self.pins.link(hook.program, hook.ifindex).exists()
    }

    /// Whether any of these programs runs on an interface, whichever agent attached it.
    ///
    /// # Errors
    /// The kernel cannot say.
    pub fn has_any(
        &mut self,
        programs: &[Program],
        ifindex: u32,
        ifname: &str,
    ) -> Result<bool, DatapathError> {
        for program in programs {
            let hook = Hook::open(*program, ifindex, ifname.to_owned());
            if tcx::is_there(&hook) {
                return Ok(true);
            }
            if clsact::is_there(&mut self.route, &hook).map_err(|source| in_filter(&hook, source))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Every pinned link.
    ///
    /// # Errors
    /// The file system's.
    pub fn pinned(&self) -> Result<Vec<PinnedHook>, DatapathError> {
        self.pins
            .links()
            .map_err(|source| DatapathError::Pins { path: self.pins.root().to_path_buf(), source })
    }

    fn attach_link(
        &mut self,
        hook: &Hook,
        has_behind: impl Fn(Program) -> bool,
    ) -> Result<(), DatapathError> {
        let pin = self.pins.link(hook.program, hook.ifindex);
        self.programs.fall_back(hook.set, hook.program);
        let program = self.programs.get(hook.set, hook.program)?;
        let _expedited = self.grace_periods.expedite();
        let begun = Instant::now();
        loop {
            match tcx::attach(program, hook, &self.pins, &has_behind) {
                // A link that could not be removed, or a pin of an earlier interface with this ifindex. Some
                // kernels free an unpinned link a grace period later, and reject the program until then.
                Err(error) if error.means_still_there() && begun.elapsed() < LINGERING => {
                    tcx::detach(&pin).map_err(|source| in_link(hook, source))?;
                    thread::sleep(Duration::from_millis(1));
                }
                attached => break attached.map_err(|source| in_link(hook, source))?,
            }
        }
        self.note(hook, ProgramMode::Tcx);
        Ok(())
    }

    fn attach_filter(&mut self, hook: &Hook) -> Result<(), DatapathError> {
        self.programs.fall_back(hook.set, hook.program);
        let program = self.programs.get(hook.set, hook.program)?;
        clsact::attach(&mut self.route, program, hook).map_err(|source| in_filter(hook, source))?;
        self.note(hook, ProgramMode::Clsact);
        Ok(())
    }

    pub(super) fn adopt_link(&mut self, hook: &Hook) -> Result<bool, DatapathError> {
        let program = self.programs.get(hook.set, hook.program)?;
        let pin = self.pins.link(hook.program, hook.ifindex);
        tcx::adopt(program, &pin).map_err(|source| in_link(hook, source))
    }

    pub(super) fn adopt_filter(&mut self, hook: &Hook) -> Result<bool, DatapathError> {
        let program = self.programs.get(hook.set, hook.program)?;
        clsact::adopt(&mut self.route, program, hook).map_err(|source| in_filter(hook, source))
    }

    fn detach_link(&mut self, hook: &Hook) -> Result<(), DatapathError> {
        let _expedited = self.grace_periods.expedite();
        tcx::detach(&self.pins.link(hook.program, hook.ifindex)).map_err(|source| in_link(hook, source))
    }

    fn detach_filter(&mut self, hook: &Hook) -> Result<(), DatapathError> {
        clsact::detach(&mut self.route, hook).map_err(|source| in_filter(hook, source))
    }
}

fn in_link(hook: &Hook, source: tcx::TcxError) -> DatapathError {
    DatapathError::Tcx { hook: hook.clone(), source }
}

fn in_filter(hook: &Hook, source: clsact::ClsactError) -> DatapathError {
    DatapathError::Clsact { hook: hook.clone(), source }
}
