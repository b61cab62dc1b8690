//! Stops the agent that runs, and waits until it has let go of its directories.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{fs, str};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::Pid;

use crate::config::Config;
use crate::state::{Store, StoreError};

/// How long it may take: it answers what it has begun.
const PATIENCE: Duration = Duration::from_secs(15);

/// Why it still runs.
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    /// Its process is not seen from here.
    #[error(
        "the agent at {0} is a process of another PID namespace: stop it where it was started, and run this again"
    )]
    Elsewhere(PathBuf),
    /// It cannot be asked.
    #[error("the agent (process {pid}) cannot be stopped: {source}")]
    Refused {
        /// Its process.
        pid: i32,
        /// Why.
        source: io::Error,
    },
    /// It goes on, or another one has been started.
    #[error("an agent still uses {0} after {PATIENCE:?}: stop it, and run this again")]
    StillThere(PathBuf),
    /// The state directory.
    #[error(transparent)]
    State(#[from] StoreError),
}

/// Stops the agent that listens; none may. Its process.
///
/// # Errors
/// [`StopError`].
pub(super) fn stop(config: &Config) -> Result<Option<i32>, StopError> {
    let pid = match UnixStream::connect(&config.socket) {
        Ok(stream) => getsockopt(&stream, PeerCredentials).ok().map(|peer| peer.pid()),
        Err(_) => None,
    };
    match pid {
        Some(0) => return Err(StopError::Elsewhere(config.socket.clone())),
        Some(pid) => ask(pid).map_err(|source| StopError::Refused { pid, source })?,
        None => {}
    }
    let begun = Instant::now();
    loop {
        match Store::open(&config.state_dir) {
            Ok(_let_go) => return Ok(pid),
            Err(StoreError::Taken(path)) if begun.elapsed() > PATIENCE => {
                return Err(StopError::StillThere(path));
            }
            Err(StoreError::Taken(_)) => sleep(Duration::from_millis(20)),
            Err(error) => return Err(error.into()),
        }
    }
}

/// A service manager would start it again, so that one is asked where the process is a unit's.
fn ask(pid: i32) -> io::Result<()> {
    if let Some(unit) = unit_of(pid) {
        let status = Command::new("systemctl").args(["stop", &unit]).status()?;
        return if status.success() {
            Ok(())
        } else {
            Err(io::Error::other(format!("systemctl stop {unit}: {status}")))
        };
    }
    match kill(Pid::from_raw(pid), Signal::SIGTERM) {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// The unit of systemd's whose main process it is.
fn unit_of(pid: i32) -> Option<String> {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let unit =
        groups.lines().find_map(|line| line.rsplit('/').next().filter(|name| name.ends_with(".service")))?;
    let shown =
        Command::new("systemctl").args(["show", "--property=MainPID", "--value", unit]).output().ok()?;
    let main = str::from_utf8(&shown.stdout).ok()?.trim();
    (main == pid.to_string()).then(|| unit.to_owned())
}
