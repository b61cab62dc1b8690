//! The program of an uplink's driver: XDP in native mode, on a link that is pinned so that it outlives the agent (Linux 5.9).
//!
//! Never in generic mode: that runs behind the making of a socket buffer, and costs what it should save.

use std::path::Path;

use aya::programs::links::{FdLink, PinnedLink};
use aya::programs::xdp::XdpLink;
use aya::programs::{ProgramError, Xdp, XdpMode};

use super::tcx::{self, TcxError};
use crate::failpoints::{self, Failpoint};

/// The program's name in the object, in pins and in reports.
pub const NAME: &str = "from_nic";

/// Attaches the program, in the place of what is behind the pin, and without a packet that meets none.
///
/// # Errors
/// [`TcxError`]; nothing new stays attached.
pub fn attach(program: &mut Xdp, ifindex: u32, pin: &Path) -> Result<(), TcxError> {
    failpoints::pass(Failpoint::Bpf).map_err(ProgramError::from)?;
    if pin.exists() {
        if update(program, pin).is_ok() {
            return Ok(());
        }
        // Its interface has gone, and this is another one.
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

/// The kernel's id of the program behind a pin; none where there is no link, or it has lost its interface.
pub fn attached(pin: &Path) -> Option<u32> {
    let info = FdLink::from(PinnedLink::from_pin(pin).ok()?).info().ok()?;
    Some(info.program_id())
}
