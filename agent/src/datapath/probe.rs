//! Probes for tcx by a system call: distributions backport it, so the version says nothing.

use aya::programs::{ProgramError, SchedClassifier, TcAttachType};
use nix::libc;

/// Queries the programs of the loopback device: a kernel without tcx rejects the query (`EINVAL`), one with
/// tcx answers it or finds nothing (`ENOENT`). Nothing is attached.
pub fn has_tcx() -> bool {
    match SchedClassifier::query_tcx("lo", TcAttachType::Egress) {
        Ok(_) => true,
        Err(ProgramError::SyscallError(error)) => error.io_error.raw_os_error() == Some(libc::ENOENT),
        Err(_) => false,
    }
}
