//! Attaching, taking over and detaching programs, in whichever way this kernel has.

use shunt_agent_api::ProgramMode;

use super::{Kernel, KernelError};
use crate::bpf::hook::{Hook, Program};
use crate::bpf::pins::PinnedHook;
use crate::bpf::{clsact, tcx};
use crate::registry::{Attachment, Bridge};

impl Attachment {
    /// The programs of its host end.
    pub(crate) fn hooks(&self) -> [Hook; 2] {
        [Program::FromContainer, Program::ToContainer].map(|program| Hook {
            program,
            ifindex: self.port.host.index,
            ifname: self.port.host.name.clone(),
        })
    }
}

impl Bridge {
    /// The program of the bridge device.
    pub(crate) fn hook(&self) -> Hook {
        Hook { program: Program::FromHost, ifindex: self.link.index, ifname: self.link.name.clone() }
    }
}

impl Kernel {
    /// Puts this agent's program in the place of the one that an earlier agent left attached. False if none is.
    ///
    /// # Errors
    /// A pin cannot be removed, or another user's filter has our place.
    pub fn adopt(&mut self, hook: &Hook) -> Result<bool, KernelError> {
        let program = self.programs.get(hook.program)?;
        match self.mode {
            ProgramMode::Clsact => {
                clsact::adopt(&mut self.route, program, hook).map_err(|source| in_filter(hook, source))
            }
            _ => {
                tcx::adopt(program, &self.pins.link(hook.program, hook.ifindex)).map_err(|e| in_link(hook, e))
            }
        }
    }

    /// Attaches a program that is not attached.
    ///
    /// # Errors
    /// The kernel refuses; then nothing stays attached.
    pub fn attach(&mut self, hook: &Hook) -> Result<(), KernelError> {
        let program = self.programs.get(hook.program)?;
        match self.mode {
            ProgramMode::Clsact => clsact::attach(program, hook).map_err(|source| in_filter(hook, source)),
            _ => {
                let pin = self.pins.link(hook.program, hook.ifindex);
                tcx::attach(program, hook, &pin).map_err(|source| in_link(hook, source))
            }
        }
    }

    /// Detaches a program, however it was attached; it, or its interface, may be gone already.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn detach(&mut self, hook: &Hook) -> Result<(), KernelError> {
        self.detach_link(hook)?;
        if self.mode == ProgramMode::Clsact { self.detach_filter(hook) } else { Ok(()) }
    }

    /// Detaches what an agent that ran in the other mode has left, once the program is attached in this one.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn detach_other_mode(&mut self, hook: &Hook) -> Result<(), KernelError> {
        match self.mode {
            ProgramMode::Clsact => self.detach_link(hook),
            _ => self.detach_filter(hook),
        }
    }

    fn detach_link(&mut self, hook: &Hook) -> Result<(), KernelError> {
        tcx::detach(&self.pins.link(hook.program, hook.ifindex)).map_err(|source| in_link(hook, source))
    }

    fn detach_filter(&mut self, hook: &Hook) -> Result<(), KernelError> {
        clsact::detach(&mut self.route, hook).map_err(|source| in_filter(hook, source))
    }

    /// Whether this agent's program runs there, by the kernel's own word.
    ///
    /// # Errors
    /// The kernel cannot say.
    pub fn is_attached(&mut self, hook: &Hook) -> Result<bool, KernelError> {
        let id = self.programs.id(hook.program);
        match self.mode {
            ProgramMode::Clsact => clsact::find(&mut self.route, hook)
                .map(|filter| filter.is_some_and(|filter| filter.program == id))
                .map_err(|source| in_filter(hook, source)),
            _ => tcx::is_attached(hook, id).map_err(|source| in_link(hook, source)),
        }
    }

    /// Every pinned link.
    ///
    /// # Errors
    /// The file system's.
    pub fn pinned(&self) -> Result<Vec<PinnedHook>, KernelError> {
        self.pins.links().map_err(|source| KernelError::Pins { path: self.pins.root().to_path_buf(), source })
    }
}

fn in_link(hook: &Hook, source: tcx::TcxError) -> KernelError {
    KernelError::Tcx { hook: hook.clone(), source }
}

fn in_filter(hook: &Hook, source: clsact::ClsactError) -> KernelError {
    KernelError::Clsact { hook: hook.clone(), source }
}
