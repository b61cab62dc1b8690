//! Network namespaces: opened by path, entered for a while.
//!
//! A thread enters a namespace for itself: the plugin's main thread, or the thread of a call in a process that serves many.
//! [`Namespace::within`] comes back, or ends the call.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::sched::{CloneFlags, setns};
use nix::sys::statfs::{FsType, fstatfs};
use shunt_socket_namespace::namespace_of;

/// `NSFS_MAGIC` of linux/magic.h: the file system of namespaces.
const NSFS: FsType = FsType(0x6e73_6673);

/// A namespace cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NamespaceError {
    /// Nothing is there, or what is there is no namespace any more.
    #[error("the namespace {0} does not exist")]
    Gone(PathBuf),
    /// It cannot be opened.
    #[error("the namespace {path} cannot be opened: {source}")]
    Open {
        /// The path.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// It cannot be entered, for instance because it is another kind of namespace.
    #[error("the namespace {path} cannot be entered: {source}")]
    Enter {
        /// The path.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The way back failed. Nothing more can be done in this thread.
    #[error("there is no way back to the node's namespace: {0}")]
    Lost(io::Error),
    /// The container's namespace is the node's own.
    #[error("plugin's netns and netns from CNI_NETNS should not be the same")]
    Own,
}

/// An open network namespace.
#[derive(Debug)]
pub(crate) struct Namespace {
    file: File,
    path: PathBuf,
    identity: (u64, u64),
}

impl Namespace {
    /// The namespace of this thread, by a `socket` that was opened there.
    ///
    /// By its path it would cost a call 0.2 ms: for whoever looks there the kernel makes what /proc shows of this process, and it
    /// has to take that away as the process ends.
    ///
    /// # Errors
    /// [`NamespaceError::Open`].
    pub(crate) fn own(socket: &impl AsFd) -> Result<Self, NamespaceError> {
        let path = Path::new("/proc/thread-self/ns/net");
        match namespace_of(socket) {
            Ok(found) => Self::of(found.into(), path),
            // Without the right to configure this namespace, the request that needs it fails and says so.
            Err(_) => Self::open(path),
        }
    }

    /// Opens a namespace by its path.
    ///
    /// # Errors
    /// [`NamespaceError::Gone`], [`NamespaceError::Open`].
    pub(crate) fn open(path: &Path) -> Result<Self, NamespaceError> {
        let failed = |source| NamespaceError::Open { path: path.to_path_buf(), source };
        let file = shunt_regular_file::open(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                NamespaceError::Gone(path.to_path_buf())
            }
            _ => failed(error),
        })?;
        // Unmounting a namespace's bind mount leaves the plain file that it was mounted on.
        if fstatfs(&file).map_err(|errno| failed(errno.into()))?.filesystem_type() != NSFS {
            return Err(NamespaceError::Gone(path.to_path_buf()));
        }
        Self::of(file, path)
    }

    fn of(file: File, path: &Path) -> Result<Self, NamespaceError> {
        let metadata =
            file.metadata().map_err(|source| NamespaceError::Open { path: path.to_path_buf(), source })?;
        Ok(Self { file, path: path.to_path_buf(), identity: (metadata.dev(), metadata.ino()) })
    }

    /// Whether both are the same namespace.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.identity == other.identity
    }

    /// Does `work` inside `inner` and comes back to this namespace.
    ///
    /// # Errors
    /// [`NamespaceError::Enter`], [`NamespaceError::Lost`].
    pub(crate) fn within<T>(&self, inner: &Self, work: impl FnOnce() -> T) -> Result<T, NamespaceError> {
        setns(&inner.file, CloneFlags::CLONE_NEWNET)
            .map_err(|errno| NamespaceError::Enter { path: inner.path.clone(), source: errno.into() })?;
        let done = work();
        setns(&self.file, CloneFlags::CLONE_NEWNET).map_err(|errno| NamespaceError::Lost(errno.into()))?;
        Ok(done)
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    #[test]
    fn the_own_namespace_is_found_by_a_socket_and_without_one() {
        let by_path = Namespace::open(Path::new("/proc/thread-self/ns/net")).unwrap();
        let by_socket = Namespace::own(&UnixDatagram::unbound().unwrap()).unwrap();
        let refused = Namespace::own(&File::open("/dev/null").unwrap()).unwrap();
        assert!(by_socket.is(&by_path) && refused.is(&by_path));
    }
}
