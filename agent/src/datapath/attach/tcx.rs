//! Programs on pinned tcx links (Linux 6.6).

use std::fs;
use std::io;
use std::path::Path;

use aya::pin::PinError;
use aya::programs::links::{FdLink, LinkError, LinkOrder, PinnedLink};
use aya::programs::tc::{SchedClassifierLink, TcAttachOptions};
use aya::programs::{MultiProgLink as _, ProgramError, ProgramInfo, SchedClassifier, TcAttachType};
use nix::libc;
use shunt_tcx_query::{Direction, programs};

use super::hook::{Hook, Program};
use crate::datapath::pins::Pins;
use crate::failpoints::{self, Failpoint};
use crate::fdinfo;

/// Why a tcx or XDP link could not be created, taken over or removed.
#[derive(Debug, thiserror::Error)]
pub enum TcxError {
    /// The kernel refused the program or the update.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The kernel refused the link.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The name belongs to another interface by now; the link has been closed again.
    #[error("{ifname} is the interface {found}, expected {expected}: it was renamed or replaced")]
    Renamed {
        /// The name that aya resolved.
        ifname: String,
        /// The ifindex of the attachment.
        expected: u32,
        /// The ifindex that the kernel reports for the link; 0 for a deleted interface.
        found: u32,
    },
    /// The kernel does not say which programs there are.
    #[error("the kernel does not say which programs are attached: {0}")]
    Query(io::Error),
    /// The kernel does not report the link's interface; the link has been closed again.
    #[error("the link's interface cannot be read: {0}")]
    Interface(io::Error),
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

    /// The error number.
    fn errno(&self) -> Option<i32> {
        match self {
            Self::Program(ProgramError::SyscallError(error)) | Self::Link(LinkError::SyscallError(error)) => {
                error.io_error.raw_os_error()
            }
            Self::Link(LinkError::InvalidLink) => Some(libc::ENOLINK),
            Self::Query(error) | Self::Interface(error) | Self::Pin(error) | Self::Unpin(error) => {
                error.raw_os_error()
            }
            Self::Program(_) | Self::Link(_) | Self::Renamed { .. } => None,
        }
    }
}

/// Replaces the program of a pinned link without a gap (`bpf_link_update`). Returns false without a pin, or
/// if the link has lost its device; then the pin is removed, too.
///
/// # Errors
/// The kernel refuses for another reason; the link is as it was.
pub fn adopt(program: &mut SchedClassifier, pin: &Path) -> Result<bool, TcxError> {
    failpoints::pass(Failpoint::Bpf).map_err(ProgramError::from)?;
    match update(program, pin) {
        Ok(()) => Ok(true),
        Err(error) if error.means_dead() => detach(pin).map(|()| false),
        Err(error) => Err(error),
    }
}

fn update(program: &mut SchedClassifier, pin: &Path) -> Result<(), TcxError> {
    let id = program.attach_to_link(pinned(pin)?)?;
    // The pin holds the link.
    drop(program.take_link(id)?);
    Ok(())
}

/// Attaches the program behind other users' programs and in front of our own that run behind it, and pins the link.
///
/// `has_behind` says which of our programs may have a link on this interface: a pin may be left from an interface that
/// had this ifindex before.
///
/// # Errors
/// [`TcxError`]; nothing stays attached.
pub fn attach(
    program: &mut SchedClassifier,
    hook: &Hook,
    pins: &Pins,
    has_behind: impl Fn(Program) -> bool,
) -> Result<(), TcxError> {
    failpoints::pass(Failpoint::Bpf).map_err(ProgramError::from)?;
    let behind = hook.program.behind().iter().filter(|next| has_behind(**next));
    let mut behind = behind.map(|next| pins.link(*next, hook.ifindex));
    let next = behind.find(|pin| pin.exists()).map(|pin| pinned(&pin)).transpose();
    let attached = match next {
        Ok(Some(next)) => attach_at(program, hook, LinkOrder::before_link(&next)?),
        Ok(None) => attach_at(program, hook, LinkOrder::default()),
        Err(error) => Err(error),
    };
    let link = match attached {
        // The pinned link has lost its interface: this one has the same ifindex.
        Err(error) if error.means_dead() => attach_at(program, hook, LinkOrder::default())?,
        attached => attached?,
    };
    failpoints::pass(Failpoint::Bpf).map_err(ProgramError::from)?;
    FdLink::try_from(link)?.pin(pins.link(hook.program, hook.ifindex))?;
    Ok(())
}

fn pinned(pin: &Path) -> Result<SchedClassifierLink, TcxError> {
    Ok(SchedClassifierLink::try_from(FdLink::from(PinnedLink::from_pin(pin)?))?)
}

/// Attaches the program. aya resolves the interface's name, so the link's own interface is compared with the expected one.
fn attach_at(
    program: &mut SchedClassifier,
    hook: &Hook,
    order: LinkOrder,
) -> Result<SchedClassifierLink, TcxError> {
    let options = TcAttachOptions::TcxOrder(order);
    let id = program.attach_with_options(&hook.ifname, hook.program.direction(), options)?;
    let link = program.take_link(id)?;
    let found = interface(&link)?;
    if found != hook.ifindex {
        return Err(TcxError::Renamed { ifname: hook.ifname.clone(), expected: hook.ifindex, found });
    }
    Ok(link)
}

/// The ifindex of a link (`tcx_link_fdinfo`, kernel/bpf/tcx.c): aya's `LinkInfo` does not have it.
fn interface(link: &SchedClassifierLink) -> Result<u32, TcxError> {
    fdinfo::own(link.fd()?, "ifindex").map_err(TcxError::Interface)
}

/// Removes a link's pin and detaches the link; it may be gone already.
///
/// The kernel detaches a link with its last reference. The one that is held here outlives the pin, so that the kernel detaches
/// when it is closed, before this returns. Kernels that keep the pin's reference for a grace period (`bpf_free_inode`,
/// kernel/bpf/inode.c) detach after that, on their own.
///
/// # Errors
/// [`TcxError::Unpin`].
pub fn detach(pin: &Path) -> Result<(), TcxError> {
    let _closed_last = PinnedLink::from_pin(pin);
    match failpoints::pass(Failpoint::Bpf).and_then(|()| fs::remove_file(pin)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(TcxError::Unpin(error)),
        _ => Ok(()),
    }
}

/// Whether a program of this name is attached, whoever loaded it; false if the query fails.
pub fn is_there(hook: &Hook) -> bool {
    let found = SchedClassifier::query_tcx(&hook.ifname, hook.program.direction());
    let is_it = |program: &ProgramInfo| program.name_as_str() == Some(hook.program.name());
    found.is_ok_and(|(_, programs)| programs.iter().any(is_it))
}

/// Queries the kernel whether the program with this id is attached.
///
/// # Errors
/// The kernel's.
pub fn is_attached(hook: &Hook, id: u32) -> Result<bool, TcxError> {
    Ok(programs_at(hook.ifindex, hook.program.direction())?.contains(&id))
}

/// The ids of an interface's programs of one direction.
///
/// # Errors
/// The kernel's.
pub fn programs_at(ifindex: u32, direction: TcAttachType) -> Result<Vec<u32>, TcxError> {
    let direction = match direction {
        TcAttachType::Ingress => Direction::Ingress,
        _ => Direction::Egress,
    };
    programs(ifindex, direction).map_err(TcxError::Query)
}
