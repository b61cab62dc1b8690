//! A socket's file, for root alone: taken over from a dead process, never from a living one, and removed at the end.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};

use socket2::{Domain, SockAddr, Socket as RawSocket, Type};
use tokio::net::{UnixListener, UnixStream};

/// Begins the names that kubelets do not look at.
pub(crate) const HIDDEN: &str = ".";

/// Why a socket cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Another process answers there.
    #[error("another process listens on {0}")]
    Taken(PathBuf),
    /// The file system or the kernel refused.
    #[error("{path}: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error number.
        source: io::Error,
    },
}

pub(crate) fn failed(path: &Path) -> impl FnOnce(io::Error) -> SocketError {
    let path = path.to_path_buf();
    move |source| SocketError::Io { path, source }
}

/// A listening socket; its file goes when this is dropped.
#[derive(Debug)]
pub(crate) struct Socket {
    path: PathBuf,
    inode: u64,
    listener: UnixListener,
}

impl Socket {
    /// Listens at `path`, in a directory that is there.
    ///
    /// # Errors
    /// [`SocketError`].
    pub(crate) fn bind(path: &Path) -> Result<Self, SocketError> {
        if is_listened_to(path) {
            return Err(SocketError::Taken(path.to_path_buf()));
        }
        remove(path)?;
        // Born hidden and closed to others, so that nobody ever finds it open.
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let born = path.with_file_name(format!("{HIDDEN}{name}"));
        remove(&born)?;
        let listener = StdListener::bind(&born).map_err(failed(&born))?;
        fs::set_permissions(&born, Permissions::from_mode(0o600)).map_err(failed(&born))?;
        let inode = fs::symlink_metadata(&born).map_err(failed(&born))?.ino();
        fs::rename(&born, path).map_err(failed(path))?;
        listener.set_nonblocking(true).map_err(failed(path))?;
        let listener = UnixListener::from_std(listener).map_err(failed(path))?;
        Ok(Self { path: path.to_path_buf(), inode, listener })
    }

    /// Whether its file is gone, or another one is there.
    pub(crate) fn is_lost(&self) -> bool {
        !fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode)
    }

    /// Waits for a client. Cancelling it loses nothing.
    ///
    /// # Errors
    /// The kernel's; the next client may fare better.
    pub(crate) async fn accept(&self) -> io::Result<UnixStream> {
        Ok(self.listener.accept().await?.0)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if !self.is_lost() {
            let _gone = fs::remove_file(&self.path);
        }
    }
}

/// Removes a socket that nobody listens to.
///
/// # Errors
/// The file system's.
pub(crate) fn remove_stale(path: &Path) -> Result<(), SocketError> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if is_socket && !is_listened_to(path) { remove(path) } else { Ok(()) }
}

fn remove(path: &Path) -> Result<(), SocketError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(path)(error)),
        _ => Ok(()),
    }
}

/// Whether a process listens at `path`, however many clients wait for it.
fn is_listened_to(path: &Path) -> bool {
    let connect = || {
        let socket = RawSocket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        socket.connect(&SockAddr::unix(path)?)
    };
    // `EAGAIN`: the listener's queue is full (unix(7)).
    connect().map_or_else(|error: io::Error| error.kind() == io::ErrorKind::WouldBlock, |()| true)
}
