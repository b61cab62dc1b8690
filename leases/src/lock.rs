//! The lock that keeps plugin processes, ours and host-local's, from each other.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, ErrorKind},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use nix::fcntl::OFlag;

/// An exclusive `flock` on the network's file `lock`, held until dropped; the kernel drops it with the process.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock of this directory; makes the file where it is missing, not the directory.
    pub(crate) fn acquire(directory: &Path) -> io::Result<Self> {
        let file = open(directory)?;
        loop {
            match file.lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The same without waiting: none while another process has it.
    pub(crate) fn try_acquire(directory: &Path) -> io::Result<Option<Self>> {
        let file = open(directory)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

fn open(directory: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o750)
        .custom_flags(OFlag::O_NOFOLLOW.bits())
        .open(directory.join("lock"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_excludes_everybody_else_until_it_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let lock = Lock::acquire(dir.path()).unwrap();
        let another = File::open(dir.path().join("lock")).unwrap();
        assert!(matches!(another.try_lock(), Err(TryLockError::WouldBlock)));
        drop(lock);
        another.try_lock().unwrap();
    }
}
