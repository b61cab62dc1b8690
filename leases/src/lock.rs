//! Locks on files, with an end to every wait.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;
use nix::sys::stat::{major, minor};
use nix::unistd::geteuid;

/// The first pause before a lock is asked for again, and the longest.
const PAUSES: [Duration; 2] = [Duration::from_micros(100), Duration::from_millis(2)];

/// Who may hold a lock beside others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Everybody who shares it too.
    Shared,
    /// Nobody.
    Exclusive,
}

/// A lock cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The file cannot be used.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Another user's file: its lock would be in that user's hands.
    #[error("{} belongs to user {owner}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Its owner's number.
        owner: u32,
    },
    /// Others have it, and did not release it in time.
    #[error("the lock {} is held by {holder}", path.display())]
    Held {
        /// The file.
        path: PathBuf,
        /// Who has it, as far as that can be told.
        holder: String,
    },
}

impl LockError {
    /// The same of a file that people know by another path.
    pub(crate) fn named(self, path: PathBuf) -> Self {
        match self {
            Self::Io { source, .. } => Self::Io { path, source },
            Self::Foreign { owner, .. } => Self::Foreign { path, owner },
            Self::Held { holder, .. } => Self::Held { path, holder },
        }
    }
}

/// A `flock` on a file, held until dropped; the kernel drops it with the process.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock, waiting until `deadline` at most; makes the file where it is missing, not its directory.
    ///
    /// # Errors
    /// Every kind of [`LockError`].
    pub fn acquire(path: &Path, sharing: Sharing, deadline: Instant) -> Result<Self, LockError> {
        let failed = |source| LockError::Io { path: path.to_owned(), source };
        let file = open(path).map_err(failed)?;
        let owner = file.metadata().map_err(failed)?.uid();
        if ![0, geteuid().as_raw()].contains(&owner) {
            return Err(LockError::Foreign { path: path.to_owned(), owner });
        }
        let [mut pause, longest] = PAUSES;
        loop {
            let locked = match sharing {
                Sharing::Shared => file.try_lock_shared(),
                Sharing::Exclusive => file.try_lock(),
            };
            match locked {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(TryLockError::Error(error)) => return Err(failed(error)),
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                    return Err(LockError::Held { path: path.to_owned(), holder: holder(&file) });
                }
                Err(TryLockError::WouldBlock) => sleep(pause),
            }
            pause = (pause * 2).min(longest);
        }
    }
}

/// For its owner and group, with host-local's own mode for its lock: whoever can open it can keep it locked.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o750)
        .custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits())
        .open(path)
}

/// Who holds the lock of a file, by the kernel's list (proc_locks(5)); processes of other PID namespaces are not named there.
fn holder(file: &File) -> String {
    let found = file.metadata().ok().and_then(|file| {
        let name = format!("{:02x}:{:02x}:{}", major(file.dev()), minor(file.dev()), file.ino());
        let locks = fs::read_to_string("/proc/locks").ok()?;
        locks.lines().find_map(|line| {
            let mut words = line.split_whitespace().skip_while(|word| *word != "FLOCK").skip(3);
            let (process, locked) = (words.next()?, words.next()?);
            (locked == name).then(|| process.to_owned())
        })
    });
    let Some(process) = found else { return "another process".to_owned() };
    let program = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    format!("process {process} ({})", program.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Instant {
        Instant::now()
    }

    #[test]
    fn the_lock_excludes_everybody_else_until_it_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let lock = Lock::acquire(&path, Sharing::Exclusive, now()).unwrap();
        for sharing in [Sharing::Shared, Sharing::Exclusive] {
            assert!(
                matches!(Lock::acquire(&path, sharing, now()), Err(LockError::Held { .. })),
                "{sharing:?}"
            );
        }
        drop(lock);
        let shared = [(); 2].map(|()| Lock::acquire(&path, Sharing::Shared, now()).unwrap());
        assert!(Lock::acquire(&path, Sharing::Exclusive, now()).is_err());
        drop(shared);
        Lock::acquire(&path, Sharing::Exclusive, now()).unwrap();
    }

    #[test]
    fn a_lock_that_is_kept_is_not_waited_for_longer_than_asked_and_its_holder_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let _held = Lock::acquire(&path, Sharing::Exclusive, now()).unwrap();
        let deadline = now() + Duration::from_millis(20);
        let error = Lock::acquire(&path, Sharing::Exclusive, deadline).unwrap_err().to_string();
        assert!(now() >= deadline);
        assert!(error.contains(&format!("process {}", std::process::id())), "{error}");
    }

    #[test]
    fn nobody_but_its_owner_and_group_can_open_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let _lock = Lock::acquire(&path, Sharing::Exclusive, now()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o027, 0);
    }
}
