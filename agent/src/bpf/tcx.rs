//! Programs on tcx links, each pinned so that it outlives the agent (Linux 6.6).

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use aya::pin::PinError;
use aya::programs::links::{FdLink, LinkError, PinnedLink};
use aya::programs::tc::{SchedClassifierLink, TcAttachType};
use aya::programs::{ProgramError, ProgramInfo, SchedClassifier};
use nix::libc;
use shunt_tcx::Direction;

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
    /// The kernel made no link.
    #[error("the link cannot be made: {0}")]
    Attach(io::Error),
    /// The link could not be pinned; it has been detached again.
    #[error("the link cannot be pinned: {0}")]
    Pin(io::Error),
    /// A pin could not be removed.
    #[error("the pin cannot be removed: {0}")]
    Unpin(io::Error),
}

impl From<PinError> for TcxError {
    fn from(error: PinError) -> Self {
        Self::Pin(match error {
            PinError::SyscallError(refused) => refused.io_error,
            other => io::Error::other(other),
        })
    }
}

impl TcxError {
    /// Whether the interface has the program already, or its link's name is taken (`EEXIST`).
    pub fn means_still_there(&self) -> bool {
        self.errno() == Some(libc::EEXIST)
    }

    /// Whether there is no link, it has lost its device (`ENOLINK`), or something else is pinned under its name.
    fn means_dead(&self) -> bool {
        matches!(self.errno(), Some(libc::ENOENT | libc::ENOLINK))
    }

    /// What the kernel said.
    fn errno(&self) -> Option<i32> {
        match self {
            Self::Program(ProgramError::SyscallError(error)) | Self::Link(LinkError::SyscallError(error)) => {
                error.io_error.raw_os_error()
            }
            Self::Link(LinkError::InvalidLink) => Some(libc::ENOLINK),
            Self::Attach(error) | Self::Pin(error) | Self::Unpin(error) => error.raw_os_error(),
            Self::Program(_) | Self::Link(_) => None,
        }
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
    let link = SchedClassifierLink::try_from(FdLink::from(PinnedLink::from_pin(pin)?))?;
    let id = program.attach_to_link(link)?;
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
    let next = behind.filter(|pin| pin.exists()).map(|pin| shunt_tcx::pinned(&named(&pin)?)).next();
    let next = next.transpose().map_err(TcxError::Attach)?;
    let program = program.fd()?.as_fd();
    let made = match attach_at(program, hook, next.as_ref()) {
        // It is there no more: an interface that had this number before.
        Err(error) if next.is_some() && error.means_dead() => attach_at(program, hook, None)?,
        attached => attached?,
    };
    seams::pass(Seam::Bpf).map_err(ProgramError::from)?;
    let pin = named(&pins.link(hook.program, hook.ifindex));
    pin.and_then(|pin| shunt_tcx::pin(made.as_fd(), &pin)).map_err(TcxError::Pin)
}

fn attach_at(program: BorrowedFd<'_>, hook: &Hook, before: Option<&OwnedFd>) -> Result<OwnedFd, TcxError> {
    let direction = match hook.program.direction() {
        TcAttachType::Ingress => Direction::Ingress,
        TcAttachType::Egress | TcAttachType::Custom(_) => Direction::Egress,
    };
    let before = before.map(OwnedFd::as_fd);
    shunt_tcx::attach(program, hook.ifindex, direction, before).map_err(TcxError::Attach)
}

/// A path as the kernel is told it.
fn named(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
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
