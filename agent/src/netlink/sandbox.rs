//! A socket in a container's network namespace.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use nix::libc;
use nix::sched::{CloneFlags, setns};

use super::{NetlinkError, RequestSocket};

/// Why a container's namespace cannot be talked to.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// It cannot be entered.
    #[error("the network namespace {path} cannot be entered: {source}")]
    Enter {
        /// As the runtime named it.
        path: PathBuf,
        /// The kernel's word.
        source: io::Error,
    },
    /// Netlink failed in there.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
}

/// Opens a socket in the namespace at `path`. A thread enters it and ends; the caller stays where it is.
///
/// # Errors
/// [`SandboxError`].
pub fn open(path: &Path) -> Result<RequestSocket, SandboxError> {
    let enter = |source| SandboxError::Enter { path: path.to_path_buf(), source };
    let work = || {
        let namespace = File::open(path).map_err(enter)?;
        setns(&namespace, CloneFlags::CLONE_NEWNET).map_err(|errno| enter(errno.into()))?;
        Ok(RequestSocket::open(libc::NETLINK_ROUTE)?)
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("sandbox".into());
        let entered = thread.spawn_scoped(scope, work).map_err(enter)?.join();
        entered.unwrap_or_else(|_| Err(enter(io::Error::other("the thread for it panicked"))))
    })
}
