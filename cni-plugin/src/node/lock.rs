//! Locks on the node's bridges: who makes an attachment on one shares its lock, who takes an idle one down has it alone.
//!
//! A lock is a file in a directory of root's own beside the agent's socket. A namespace's own file would not do: any process in the
//! namespace can open that, and keep its lock.

use std::fs::{DirBuilder, symlink_metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::unistd::geteuid;
use shunt_leases::{Lock, LockError, Sharing};

/// How long a lock may be waited for: whoever has it makes or deletes a few links.
const PATIENCE: Duration = Duration::from_secs(5);

/// Takes the lock of `bridge`, where the agent listens at `socket`.
///
/// # Errors
/// Every kind of [`LockError`]; `NotFound` where the socket's directory is missing.
pub(crate) fn lock_bridge(socket: &Path, bridge: &str, sharing: Sharing) -> Result<Lock, LockError> {
    let directory = socket.with_added_extension("locks");
    let failed = |source| LockError::Io { path: directory.clone(), source };
    match DirBuilder::new().mode(0o700).create(&directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
        _ => {}
    }
    let owner = symlink_metadata(&directory).map_err(failed)?.uid();
    if ![0, geteuid().as_raw()].contains(&owner) {
        return Err(LockError::Foreign { path: directory, owner });
    }
    Lock::acquire(&directory.join(bridge), sharing, Instant::now() + PATIENCE)
}
