//! One agent for a directory of pins, and one for a network namespace, whatever their other directories are.
//!
//! The directory is locked, and says for which namespace its pins are: links of another namespace would be taken for stale ones. The
//! namespace is held by a name in it that only one socket can have (an abstract address, unix(7)); where somebody without privileges
//! has taken that name, nobody is refused for it.

use std::fs::{self, File};
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};

/// The name in the namespace.
const NAME: &[u8] = b"shunt-agent";

/// What the directory's note of its namespace begins with; the namespace's inode number follows.
pub(super) const NOTE: &str = "netns-";

/// How long an agent that ends may take to let go.
const PARTING: Duration = Duration::from_secs(1);

/// Why an agent may not run here.
#[derive(Debug, thiserror::Error)]
pub enum ExclusiveError {
    /// Another agent runs with these pins.
    #[error("another agent uses the pins below {0}: stop it first")]
    Pins(PathBuf),
    /// Another agent runs in this namespace.
    #[error("another agent (process {0}) runs in this network namespace: stop it first")]
    Namespace(i32),
    /// The pins are another namespace's.
    #[error(
        "the pins below {path} are of another network namespace ({found}, and this is {own}): use another directory, \
         or remove it where that namespace is gone"
    )]
    Elsewhere {
        /// The directory.
        path: PathBuf,
        /// The namespace of the pins.
        found: String,
        /// This one.
        own: String,
    },
    /// It cannot be found out.
    #[error("{path}: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The kernel's word.
        source: io::Error,
    },
}

/// Held as long as the agent lives.
#[derive(Debug)]
pub(super) struct Exclusive {
    _pins: Flock<File>,
    _namespace: Option<UnixListener>,
}

impl Exclusive {
    /// Takes directory and namespace for this agent alone. Changes nothing where they are taken.
    ///
    /// # Errors
    /// [`ExclusiveError`].
    pub(super) fn take(pins: &Path) -> Result<Self, ExclusiveError> {
        let begun = Instant::now();
        loop {
            match Self::try_to_take(pins) {
                Err(ExclusiveError::Pins(_) | ExclusiveError::Namespace(_)) if begun.elapsed() < PARTING => {
                    sleep(Duration::from_millis(20));
                }
                taken => return taken,
            }
        }
    }

    fn try_to_take(pins: &Path) -> Result<Self, ExclusiveError> {
        let failed = |source| ExclusiveError::Io { path: pins.to_path_buf(), source };
        let directory = File::open(pins).map_err(failed)?;
        let locked =
            Flock::lock(directory, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| match errno {
                Errno::EWOULDBLOCK => ExclusiveError::Pins(pins.to_path_buf()),
                other => failed(other.into()),
            })?;
        let namespace = hold_namespace()?;
        note_namespace(pins)?;
        Ok(Self { _pins: locked, _namespace: namespace })
    }
}

/// Takes the name; none where somebody without privileges has it.
fn hold_namespace() -> Result<Option<UnixListener>, ExclusiveError> {
    let failed = |source| ExclusiveError::Io { path: "the network namespace".into(), source };
    let address = SocketAddr::from_abstract_name(NAME).map_err(failed)?;
    match UnixListener::bind_addr(&address) {
        Ok(listener) => return Ok(Some(listener)),
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => return Err(failed(error)),
        Err(_) => {}
    }
    let holder = UnixStream::connect_addr(&address).ok();
    match holder.and_then(|holder| getsockopt(&holder, PeerCredentials).ok()) {
        Some(holder) if holder.uid() == 0 => Err(ExclusiveError::Namespace(holder.pid())),
        _ => {
            tracing::warn!("somebody who is not root has taken the agent's name in this network namespace");
            Ok(None)
        }
    }
}

/// Notes this namespace in the directory, or compares it with the note that is there. bpffs takes directories and no files.
fn note_namespace(pins: &Path) -> Result<(), ExclusiveError> {
    let failed = |source| ExclusiveError::Io { path: pins.to_path_buf(), source };
    let link = fs::read_link("/proc/thread-self/ns/net").map_err(failed)?;
    let own = link.to_string_lossy().chars().filter(char::is_ascii_digit).collect::<String>();
    for entry in fs::read_dir(pins).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        match name.to_str().and_then(|name| name.strip_prefix(NOTE)) {
            Some(found) if found == own => return Ok(()),
            Some(found) => {
                let found = found.to_owned();
                return Err(ExclusiveError::Elsewhere { path: pins.to_path_buf(), found, own });
            }
            None => {}
        }
    }
    fs::create_dir(pins.join(format!("{NOTE}{own}"))).map_err(failed)
}
