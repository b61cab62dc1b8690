//! The socket's file: made for root only, or for a group that may ask, too; taken over from a dead agent and never from a living one.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};

use nix::unistd::Group;
use socket2::{Domain, SockAddr, Socket, Type};
use tokio::net::{UnixListener, UnixStream};

/// Why the agent cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenerError {
    /// Another agent answers there.
    #[error("another agent listens on {0}")]
    Taken(PathBuf),
    /// Something that is no socket is there.
    #[error("{0} is there and is not a socket")]
    Foreign(PathBuf),
    /// There is no such group.
    #[error("there is no group {0}")]
    NoGroup(String),
    /// The agent cannot give the socket to the group.
    #[error(
        "the socket cannot be given to the group {group}: {source}; the agent may do so only as a member of it, \
         as by `SupplementaryGroups={group}` in its unit"
    )]
    Group {
        /// The group.
        group: String,
        /// The error number.
        source: io::Error,
    },
    /// The file system or the kernel refused.
    #[error("the socket {path}: {source}")]
    Io {
        /// The socket.
        path: PathBuf,
        /// The error number.
        source: io::Error,
    },
}

/// The listening socket; its file goes when this is dropped, and nobody is accepted any more.
#[derive(Debug)]
pub struct Listener {
    path: PathBuf,
    inode: u64,
    socket: UnixListener,
}

impl Listener {
    /// Listens at `path`, for root only, or for a group's members, too. Makes the directory if it is missing.
    ///
    /// # Errors
    /// [`ListenerError`]; what was there is still there, unless it was the socket of a dead agent.
    pub fn bind(path: &Path, group: Option<&str>) -> Result<Self, ListenerError> {
        let failed = |source| ListenerError::Io { path: path.to_path_buf(), source };
        if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            DirBuilder::new().recursive(true).mode(0o755).create(directory).map_err(failed)?;
        }
        if Self::refuse_taken(path)? {
            fs::remove_file(path).map_err(failed)?;
        }
        // Born under another name and closed to others, so that nobody ever finds it open.
        let born = newborn(path);
        match fs::remove_file(&born) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let socket = StdListener::bind(&born).map_err(failed)?;
        if let Some(group) = group {
            let refused = |source| ListenerError::Group { group: group.to_owned(), source };
            chown(&born, None, Some(Self::group_number(group)?)).map_err(refused)?;
        }
        let mode = if group.is_some() { 0o660 } else { 0o600 };
        fs::set_permissions(&born, Permissions::from_mode(mode)).map_err(failed)?;
        let inode = fs::symlink_metadata(&born).map_err(failed)?.ino();
        fs::rename(&born, path).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let socket = UnixListener::from_std(socket).map_err(failed)?;
        Ok(Self { path: path.to_path_buf(), inode, socket })
    }

    /// Whether a dead agent's socket is there.
    ///
    /// # Errors
    /// [`ListenerError::Taken`], [`ListenerError::Foreign`]: another agent's, or no socket.
    pub fn refuse_taken(path: &Path) -> Result<bool, ListenerError> {
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(ListenerError::Io { path: path.to_path_buf(), source }),
            Ok(found) if !found.file_type().is_socket() => Err(ListenerError::Foreign(path.to_path_buf())),
            Ok(_) if is_listened_to(path) => Err(ListenerError::Taken(path.to_path_buf())),
            Ok(_) => Ok(true),
        }
    }

    /// Whether [`Listener::bind`] could listen there: [`Listener::refuse_taken`], and the path is not too long for a socket.
    ///
    /// # Errors
    /// [`ListenerError`].
    pub fn look(path: &Path) -> Result<bool, ListenerError> {
        SockAddr::unix(newborn(path))
            .map_err(|source| ListenerError::Io { path: path.to_path_buf(), source })?;
        Self::refuse_taken(path)
    }

    /// The number of a group, by its name or number.
    ///
    /// # Errors
    /// [`ListenerError::NoGroup`].
    pub fn group_number(group: &str) -> Result<u32, ListenerError> {
        if let Ok(number) = group.parse() {
            return Ok(number);
        }
        let found = Group::from_name(group).ok().flatten();
        found.map(|found| found.gid.as_raw()).ok_or_else(|| ListenerError::NoGroup(group.to_owned()))
    }

    /// Where it listens.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether its file is gone, or another one is there.
    pub fn is_lost(&self) -> bool {
        !fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode)
    }

    /// Waits for a client. Cancelling it loses nothing.
    ///
    /// # Errors
    /// The kernel's; the next client may fare better.
    pub async fn accept(&self) -> io::Result<UnixStream> {
        Ok(self.socket.accept().await?.0)
    }
}

/// The name that the socket's file is made under.
fn newborn(path: &Path) -> PathBuf {
    path.with_added_extension("new")
}

/// Whether a process listens at `path`, however many clients wait for it.
fn is_listened_to(path: &Path) -> bool {
    let connect = || {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        socket.connect(&SockAddr::unix(path)?)
    };
    // `EAGAIN`: the listener's queue is full (unix(7)).
    connect().map_or_else(|error: io::Error| error.kind() == io::ErrorKind::WouldBlock, |()| true)
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Another agent may have its own socket there by now.
        if fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode) {
            let _gone = fs::remove_file(&self.path);
        }
    }
}
