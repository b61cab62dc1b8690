//! A socket in another network namespace.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::{io, thread};

use nix::fcntl::OFlag;
use nix::sched::{CloneFlags, setns};

use crate::connection::Connection;
use crate::error::NetlinkError;

/// Why a network namespace cannot be talked to.
#[derive(Debug, thiserror::Error)]
pub enum NamespaceError {
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

/// Opens a routing socket in the namespace at `path`. A thread enters it and ends; the caller stays where it is.
///
/// # Errors
/// [`NamespaceError`].
pub fn connect_within(path: &Path) -> Result<Connection, NamespaceError> {
    let enter = |source| NamespaceError::Enter { path: path.to_path_buf(), source };
    let work = || {
        let namespace = open(path).map_err(enter)?;
        setns(&namespace, CloneFlags::CLONE_NEWNET).map_err(|errno| enter(errno.into()))?;
        Ok(Connection::open()?)
    };
    apart("sandbox", work).unwrap_or_else(|error| Err(enter(error)))
}

/// Opens a namespace's file, and nothing that its opener would wait for.
fn open(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)
}

/// Does something in a thread that ends with it: the network namespace of a thread is its own affair.
///
/// # Errors
/// There is no thread, or it panicked.
pub fn apart<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name(name.into());
        let done = thread.spawn_scoped(scope, work)?.join();
        done.map_err(|_| io::Error::other("the thread for it panicked"))
    })
}
