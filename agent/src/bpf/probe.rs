//! Whether the kernel has tcx, found by asking it and not by its version (distributions backport).

use aya::programs::{ProgramError, SchedClassifier, TcAttachType};
use nix::libc;

/// Asks what is attached to the loopback device: a kernel without tcx does not know the question (`EINVAL`), one with
/// it answers or says that nothing is (`ENOENT`). Nothing is attached to find out.
pub fn has_tcx() -> bool {
    match SchedClassifier::query_tcx("lo", TcAttachType::Egress) {
        Ok(_) => true,
        Err(ProgramError::SyscallError(error)) => error.io_error.raw_os_error() == Some(libc::ENOENT),
        Err(_) => false,
    }
}
