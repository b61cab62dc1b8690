//! Programs on tcx links, each pinned so that it outlives the agent (Linux 6.6).

use std::fs;
use std::io;
use std::path::Path;

use aya::pin::PinError;
use aya::programs::links::{FdLink, LinkError, LinkOrder, PinnedLink};
use aya::programs::tc::{SchedClassifierLink, SchedClassifierLinkId, TcAttachOptions};
use aya::programs::{ProgramError, ProgramInfo, SchedClassifier};
use nix::libc;

use super::hook::{Hook, Program};
use super::pins::Pins;
use crate::seams::{self, Seam};

/// Why a link could not be made, taken over or removed; of a driver's program, too.
#[derive(Debug, thiserror::Error)]
pub enum TcxError {
    /// The kernel refused the program or the update.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The kernel refused the link.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The link could not be pinned; it has been detached again.
    #[error("the link cannot be pinned: {0}")]
    Pin(#[from] PinError),
    /// A pin could not be removed.
    #[error("the pin cannot be removed: {0}")]
    Unpin(io::Error),
}

impl TcxError {
    /// Whether the interface has the program already, or its link's name is taken (`EEXIST`).
    pub fn means_still_there(&self) -> bool {
        matches!(self,
            Self::Program(ProgramError::SyscallError(error)) | Self::Pin(PinError::SyscallError(error))
                if error.io_error.raw_os_error() == Some(libc::EEXIST))
    }

    /// Whether there is no link, it has lost its device (`ENOLINK`), or something else is pinned under its name.
    fn means_dead(&self) -> bool {
        let errno = match self {
            Self::Program(ProgramError::SyscallError(error)) | Self::Link(LinkError::SyscallError(error)) => {
                error.io_error.raw_os_error()
            }
            Self::Link(LinkError::InvalidLink) => Some(libc::ENOLINK),
            _ => None,
        };
        matches!(errno, Some(libc::ENOENT | libc::ENOLINK))
    }
}

/// Puts the program behind the pinned link, in place of the one that runs there (`bpf_link_update`): no packet goes
/// without. False if there is no such pin, or the link has lost its device; then the pin is gone too.
///
/// # Errors
/// The kernel refuses for another reason; the link is as it was.
pub fn adopt(program: &mut SchedClassifier, pin: &Path) -> Result<bool, TcxError> {
    seams::pass(Seam::Bpf).map_err(ProgramError::from)?;
    match update(program, pin) {
        Ok(()) => Ok(true),
        Err(error) if error.means_dead() => detach(pin).map(|()| false),
        Err(error) => Err(error),
    }
}

fn update(program: &mut SchedClassifier, pin: &Path) -> Result<(), TcxError> {
    let id = program.attach_to_link(link(pin)?)?;
    // The pin holds the link.
    drop(program.take_link(id)?);
    Ok(())
}

/// Attaches the program behind what others have attached there, but in front of what is ours and runs behind it (`has_behind`: of which
/// programs there may be a link), and pins the link.
///
/// # Errors
/// [`TcxError`]; nothing stays attached.
pub fn attach(
    program: &mut SchedClassifier,
    hook: &Hook,
    pins: &Pins,
    has_behind: impl Fn(Program) -> bool,
) -> Result<(), TcxError> {
    seams::pass(Seam::Bpf).map_err(ProgramError::from)?;
    let behind = hook.program.behind().iter().filter(|next| has_behind(**next));
    let behind = behind.map(|next| pins.link(*next, hook.ifindex));
    let next = behind.filter(|pin| pin.exists()).map(|pin| link(&pin)).next().transpose()?;
    let before = next.as_ref().map(LinkOrder::before_link).transpose()?;
    let has_next = before.is_some();
    let id = match attach_at(program, hook, before.unwrap_or_else(LinkOrder::last)) {
        // It is there no more: an interface that had this number before.
        Err(error) if has_next && error.means_dead() => attach_at(program, hook, LinkOrder::last())?,
        attached => attached?,
    };
    let link = FdLink::try_from(program.take_link(id)?)?;
    seams::pass(Seam::Bpf).map_err(ProgramError::from)?;
    link.pin(pins.link(hook.program, hook.ifindex))?;
    Ok(())
}

fn attach_at(
    program: &mut SchedClassifier,
    hook: &Hook,
    order: LinkOrder,
) -> Result<SchedClassifierLinkId, TcxError> {
    let options = TcAttachOptions::TcxOrder(order);
    Ok(program.attach_with_options(&hook.ifname, hook.program.direction(), options)?)
}

fn link(pin: &Path) -> Result<SchedClassifierLink, LinkError> {
    SchedClassifierLink::try_from(FdLink::from(PinnedLink::from_pin(pin)?))
}

/// Removes the pin, and with it the link. It may be gone already.
///
/// # Errors
/// [`TcxError::Unpin`].
pub fn detach(pin: &Path) -> Result<(), TcxError> {
    match seams::pass(Seam::Bpf).and_then(|()| fs::remove_file(pin)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(TcxError::Unpin(error)),
        _ => Ok(()),
    }
}

/// Whether a program of this name runs there, whoever loaded it; not where the kernel cannot say.
pub fn is_there(hook: &Hook) -> bool {
    let found = SchedClassifier::query_tcx(&hook.ifname, hook.program.direction());
    let is_it = |program: &ProgramInfo| program.name_as_str() == Some(hook.program.name());
    found.is_ok_and(|(_, programs)| programs.iter().any(is_it))
}

/// Whether the program of this id runs on the interface, by the kernel's own word.
///
/// # Errors
/// The kernel's.
pub fn is_attached(hook: &Hook, id: u32) -> Result<bool, TcxError> {
    let (_, programs) = SchedClassifier::query_tcx(&hook.ifname, hook.program.direction())?;
    Ok(programs.iter().any(|program| program.id() == id))
}
