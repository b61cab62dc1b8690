//! `/sys/kernel/rcu_expedited`: one integer for the whole machine; any but 0 expedites its grace periods.
//!
//! The value is also the record of who set it: only [`MARK`], the agents' own value, is ever replaced by 0. A lock or a file beside it
//! could not be shared by agents in pods, which have their own `/run`, and their own sysfs inodes with their own network namespace.
//! Where two agents overlap, the first to finish resets the switch, and the other's call takes a normal grace period. What a killed
//! agent leaves is reset by the next call or start of any agent. The kernel has no compare-and-swap for the value: an operator's write
//! within the microseconds between an agent's read and write is lost.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The agents' value: "SHNT" in ASCII.
pub const MARK: i32 = 0x5348_4e54;

/// The file, below sysfs.
#[derive(Clone, Debug)]
pub(super) struct Switch {
    path: PathBuf,
}

impl Switch {
    /// The switch of the sysfs that is mounted at `sys`.
    pub(super) fn of(sys: &Path) -> Self {
        Self { path: sys.join("kernel/rcu_expedited") }
    }

    /// Its path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the agent may write it.
    pub(super) fn probe(&self) -> io::Result<()> {
        fs::OpenOptions::new().write(true).open(&self.path).map(drop)
    }

    /// The value, if an operator has set it.
    pub(super) fn operators(&self) -> Option<i32> {
        self.value().ok().filter(|value| ![0, MARK].contains(value))
    }

    /// Sets the switch, unless an operator has. Returns whether [`Switch::reset`] has to follow.
    pub(super) fn set(&self) -> io::Result<bool> {
        match self.value()? {
            0 => fs::write(&self.path, MARK.to_string()).map(|()| true),
            MARK => Ok(true),
            _operators => Ok(false),
        }
    }

    /// Resets the switch, unless somebody else has changed it.
    pub(super) fn reset(&self) -> io::Result<()> {
        if self.value()? == MARK { fs::write(&self.path, "0") } else { Ok(()) }
    }

    fn value(&self) -> io::Result<i32> {
        let text = fs::read_to_string(&self.path)?;
        text.trim().parse().map_err(|_| io::Error::new(io::ErrorKind::InvalidData, text))
    }
}
