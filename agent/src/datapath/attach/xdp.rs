//! The XDP program of an uplink's driver, on a pinned link (Linux 5.9).
//!
//! Only in native mode: generic XDP runs after the socket buffer is allocated and saves nothing.

use std::path::Path;

use aya::programs::links::{FdLink, PinnedLink};
use aya::programs::xdp::XdpLink;
use aya::programs::{ProgramError, Xdp, XdpMode};

use super::tcx::{self, TcxError};
use crate::failpoints::{self, Failpoint};

/// The program's name in the object, in pins and in reports.
pub const NAME: &str = "from_nic";

/// Attaches the program, or replaces the program of the pinned link without a gap.
///
/// # Errors
/// [`TcxError`]; nothing new stays attached.
pub fn attach(program: &mut Xdp, ifindex: u32, pin: &Path) -> Result<(), TcxError> {
    failpoints::pass(Failpoint::Bpf).map_err(ProgramError::from)?;
    if pin.exists() {
        if update(program, pin).is_ok() {
            return Ok(());
        }
        // The link's interface is gone; this is another one with its ifindex.
        tcx::detach(pin)?;
    }
    let id = program.attach_to_if_index(ifindex, XdpMode::Driver)?;
    let link = FdLink::try_from(program.take_link(id)?)?;
    failpoints::pass(Failpoint::Bpf).map_err(ProgramError::from)?;
    link.pin(pin)?;
    Ok(())
}

fn update(program: &mut Xdp, pin: &Path) -> Result<(), TcxError> {
    let link = FdLink::from(PinnedLink::from_pin(pin)?);
    let id = program.attach_to_link(XdpLink::try_from(link)?)?;
    // The pin holds the link.
    drop(program.take_link(id)?);
    Ok(())
}

/// The id of the program on a pinned link; none without a link, or if its interface is gone.
pub fn attached(pin: &Path) -> Option<u32> {
    let info = FdLink::from(PinnedLink::from_pin(pin).ok()?).info().ok()?;
    Some(info.program_id())
}
