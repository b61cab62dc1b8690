//! What the agent keeps of root's power, and why; everything else is given up before the first thread is made.
//!
//! Capabilities belong to a thread, and later threads and programs inherit them: so this comes first of all. The bounding set
//! goes down too, and `no_new_privs` is set: nothing that the agent could ever run gets more. It runs nothing; with `[api]` it runs
//! other plugins of a chain, which have no more than this either.

use std::collections::HashSet;

use caps::errors::CapsError;
use caps::{CapSet, Capability};
use nix::errno::Errno;

/// What is kept, each with the calls that want it.
pub const KEPT: [(Capability, &str); 3] = [
    (
        Capability::CAP_NET_ADMIN,
        "links, addresses, qdiscs, filters, nf_tables, conntrack; tcx links; aborting sockets; receive buffers beyond the \
         limit",
    ),
    (
        Capability::CAP_SYS_ADMIN,
        "mounting bpffs; setns into a container to limit what it sends; unshare for the namespace that keeps the kernel's \
         hooks on, and for one with a writable /proc/sys/net; loading programs that the verifier judges as privileged ones (it stands for CAP_BPF and CAP_PERFMON), \
         finding programs and maps by their ids",
    ),
    (
        Capability::CAP_SYS_PTRACE,
        "opening a container's namespace as /proc/PID/ns/net: the container may have capabilities that the agent has not; \
         taking descriptors of UDP sockets to connect them anew",
    ),
];

/// Why powers could not be given up.
#[derive(Debug, thiserror::Error)]
pub enum PrivilegeError {
    /// The kernel refused to change the capabilities.
    #[error("capabilities: {0}")]
    Capabilities(#[from] CapsError),
    /// The kernel refused `no_new_privs`.
    #[error("no_new_privs: {0}")]
    NoNewPrivileges(#[from] Errno),
}

/// Gives up, for this thread and all that it will make, every capability but those of [`KEPT`] that it has.
///
/// # Errors
/// [`PrivilegeError`]; some may be given up.
pub fn give_up_the_rest() -> Result<(), PrivilegeError> {
    let kept: HashSet<_> = KEPT.iter().map(|(capability, _)| *capability).collect();
    // Ambient ones first: the kernel wants them to be inheritable. The bounding set takes CAP_SETPCAP, which goes after.
    caps::clear(None, CapSet::Ambient)?;
    if caps::has_cap(None, CapSet::Effective, Capability::CAP_SETPCAP)? {
        for capability in caps::read(None, CapSet::Bounding)?.difference(&kept) {
            caps::drop(None, CapSet::Bounding, *capability)?;
        }
    }
    caps::clear(None, CapSet::Inheritable)?;
    for set in [CapSet::Effective, CapSet::Permitted] {
        let left = caps::read(None, set)?.intersection(&kept).copied().collect();
        caps::set(None, set, &left)?;
    }
    Ok(nix::sys::prctl::set_no_new_privs()?)
}
