//! Programs on the sockets of a cgroup, on pinned links (Linux 5.7).

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use aya::pin::PinError;
use aya::programs::links::{FdLink, LinkError};
use aya::programs::{CgroupAttachMode, CgroupSockAddr, ProgramError};
use nix::sys::statfs::{CGROUP2_SUPER_MAGIC, statfs};

/// Where systems mount cgroup2: alone, or beside cgroup v1.
const MOUNTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// The programs, named as the kernel names the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "each is the call and the version of IP")]
pub enum SocketProgram {
    Connect4,
    Connect6,
    Sendmsg4,
    Sendmsg6,
    Recvmsg4,
    Recvmsg6,
    Getpeername4,
    Getpeername6,
}

impl SocketProgram {
    /// Every program in the order of attachment: the programs for replies come first.
    pub const ALL: [Self; 8] = [
        Self::Getpeername4,
        Self::Getpeername6,
        Self::Recvmsg4,
        Self::Recvmsg6,
        Self::Sendmsg4,
        Self::Sendmsg6,
        Self::Connect4,
        Self::Connect6,
    ];

    /// Its name in the object, in pins and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect4 => "connect4",
            Self::Connect6 => "connect6",
            Self::Sendmsg4 => "sendmsg4",
            Self::Sendmsg6 => "sendmsg6",
            Self::Recvmsg4 => "recvmsg4",
            Self::Recvmsg6 => "recvmsg6",
            Self::Getpeername4 => "getpeername4",
            Self::Getpeername6 => "getpeername6",
        }
    }
}

/// Why a program is not on the sockets.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// No cgroup2 is mounted at the usual paths.
    #[error("no cgroup2 is mounted at {} or {}; name one with `cgroup`", MOUNTS[0], MOUNTS[1])]
    NoCgroup,
    /// The configured directory is no cgroup2.
    #[error("{0} is no directory of a cgroup2")]
    NotCgroup(PathBuf),
    /// The cgroup cannot be opened, or a pin cannot be replaced.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// The file system's word.
        source: io::Error,
    },
    /// The kernel refused the program.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The kernel refused the link.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The link could not be pinned; it has been detached again.
    #[error("the link cannot be pinned: {0}")]
    Pin(#[from] PinError),
}

impl SocketError {
    fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { path: path.to_path_buf(), source }
    }
}

/// Opens the configured cgroup, or else the root of cgroup2.
///
/// # Errors
/// [`SocketError::NoCgroup`], [`SocketError::NotCgroup`].
pub fn find_cgroup(wanted: Option<&Path>) -> Result<PathBuf, SocketError> {
    let is_cgroup = |path: &Path| statfs(path).is_ok_and(|fs| fs.filesystem_type() == CGROUP2_SUPER_MAGIC);
    match wanted {
        Some(path) if is_cgroup(path) => Ok(path.to_path_buf()),
        Some(path) => Err(SocketError::NotCgroup(path.to_path_buf())),
        None => {
            MOUNTS.map(PathBuf::from).into_iter().find(|path| is_cgroup(path)).ok_or(SocketError::NoCgroup)
        }
    }
}

/// Attaches the program beside other users' programs, and replaces an earlier agent's pinned link. For a
/// moment both run: what the first has translated matches no host port in the second.
///
/// # Errors
/// [`SocketError`]; what was attached before stays so.
pub fn attach(program: &mut CgroupSockAddr, cgroup: &Path, pin: &Path) -> Result<(), SocketError> {
    let directory = File::open(cgroup).map_err(SocketError::file(cgroup))?;
    let id = program.attach(directory, CgroupAttachMode::Single)?;
    let link = FdLink::try_from(program.take_link(id)?)?;
    let fresh = pin.with_file_name("fresh");
    detach(&fresh)?;
    link.pin(&fresh)?;
    fs::rename(&fresh, pin).map_err(SocketError::file(pin))
}

/// Removes the pin, and with it the link. It may be gone already.
///
/// # Errors
/// [`SocketError::File`].
pub fn detach(pin: &Path) -> Result<(), SocketError> {
    match fs::remove_file(pin) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(SocketError::file(pin)(error)),
        _ => Ok(()),
    }
}
