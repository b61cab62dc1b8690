//! The program of an uplink's driver: XDP in native mode, on a link that is pinned so that it outlives the agent (Linux 5.9).
//!
//! Never in generic mode: that runs behind the making of a socket buffer, and costs what it should save.

use std::path::Path;

use aya::pin::PinError;
use aya::programs::links::{FdLink, LinkError, PinnedLink};
use aya::programs::xdp::XdpLink;
use aya::programs::{ProgramError, Xdp, XdpMode};

use super::tcx;
use crate::seams::{self, Seam};

/// The program's name in the object, in pins and in reports.
pub const NAME: &str = "from_nic";

/// Why a driver does not run the program.
#[derive(Debug, thiserror::Error)]
pub enum NativeError {
    /// The driver or the kernel refused it, or the update.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The kernel refused the link.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The link could not be pinned; it has been detached again.
    #[error("the link cannot be pinned: {0}")]
    Pin(#[from] PinError),
    /// A pin could not be removed.
    #[error(transparent)]
    Unpin(#[from] tcx::TcxError),
}

/// Attaches the program, in the place of what is behind the pin, and without a packet that meets none.
///
/// # Errors
/// [`NativeError`]; nothing new stays attached.
pub fn attach(program: &mut Xdp, ifindex: u32, pin: &Path) -> Result<(), NativeError> {
    seams::pass(Seam::Bpf).map_err(ProgramError::from)?;
    if pin.exists() {
        if update(program, pin).is_ok() {
            return Ok(());
        }
        // Its interface has gone, and this is another one.
        tcx::detach(pin)?;
    }
    let id = program.attach_to_if_index(ifindex, XdpMode::Driver)?;
    let link = FdLink::try_from(program.take_link(id)?)?;
    seams::pass(Seam::Bpf).map_err(ProgramError::from)?;
    link.pin(pin)?;
    Ok(())
}

fn update(program: &mut Xdp, pin: &Path) -> Result<(), NativeError> {
    let link = FdLink::from(PinnedLink::from_pin(pin)?);
    let id = program.attach_to_link(XdpLink::try_from(link)?)?;
    // The pin holds the link.
    drop(program.take_link(id)?);
    Ok(())
}

/// The kernel's id of the program behind a pin; none where there is no link, or it has lost its interface.
pub fn attached(pin: &Path) -> Option<u32> {
    let info = FdLink::from(PinnedLink::from_pin(pin).ok()?).info().ok()?;
    Some(info.program_id())
}
