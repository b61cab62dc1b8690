//! Whether the kernel has tcx, found by asking it and not by its version (distributions backport).

use aya::programs::{ProgramError, SchedClassifier, TcAttachType};
use nix::libc;
use shunt_agent_api::ProgramMode;

use crate::config::AttachMode;

/// The way of attaching that is wanted and that this kernel has.
pub fn mode(wanted: AttachMode) -> ProgramMode {
    match wanted {
        AttachMode::Tcx => ProgramMode::Tcx,
        AttachMode::Clsact => ProgramMode::Clsact,
        AttachMode::Auto if has_tcx() => ProgramMode::Tcx,
        AttachMode::Auto => ProgramMode::Clsact,
    }
}

/// Asks what is attached to the loopback device: a kernel without tcx does not know the question (`EINVAL`), one with
/// it answers or says that nothing is (`ENOENT`). Nothing is attached to find out.
fn has_tcx() -> bool {
    match SchedClassifier::query_tcx("lo", TcAttachType::Egress) {
        Ok(_) => true,
        Err(ProgramError::SyscallError(error)) => error.io_error.raw_os_error() == Some(libc::ENOENT),
        Err(_) => false,
    }
}
