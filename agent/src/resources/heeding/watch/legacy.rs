//! Calls of legacy iptables, which tells nobody of a change: each holds a lock while it works.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

/// The lock of iptables and ip6tables (`XT_LOCK_NAME`). Who keeps it elsewhere (`XTABLES_LOCKFILE`) is heeded within the lease.
const LOCK: &str = "/run/xtables.lock";

/// Hears when the lock is let go.
#[derive(Debug)]
pub(super) struct LegacyCalls {
    inotify: Inotify,
    lock: PathBuf,
    hears: bool,
}

impl AsFd for LegacyCalls {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}

impl LegacyCalls {
    /// Listens from now on.
    ///
    /// # Errors
    /// There is no descriptor for it.
    pub(super) fn open() -> io::Result<Self> {
        Self::of(Path::new(LOCK))
    }

    fn of(lock: &Path) -> io::Result<Self> {
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
        let mut calls = Self { inotify, lock: lock.to_owned(), hears: false };
        calls.find_lock();
        Ok(calls)
    }

    /// Listens to the lock, unless it does already. There is none before the first call, which is heeded within the lease.
    pub(super) fn find_lock(&mut self) {
        if !self.hears {
            let closed = AddWatchFlags::IN_CLOSE_WRITE | AddWatchFlags::IN_CLOSE_NOWRITE;
            self.hears = self.inotify.add_watch(&self.lock, closed).is_ok();
        }
    }

    /// Whether one has ended since the last look.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn have_ended(&self) -> io::Result<bool> {
        match self.inotify.read_events() {
            Ok(events) => Ok(!events.is_empty()),
            Err(Errno::EAGAIN) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    #[test]
    fn a_lock_that_is_let_go_is_heard() {
        let folder = tempfile::tempdir().unwrap();
        let lock = folder.path().join("xtables.lock");
        let mut calls = LegacyCalls::of(&lock).unwrap();
        fs::write(&lock, "").unwrap();
        assert!(!calls.have_ended().unwrap(), "there was no lock to listen to");
        calls.find_lock();
        let held = File::open(&lock).unwrap();
        assert!(!calls.have_ended().unwrap());
        drop(held);
        assert!(calls.have_ended().unwrap());
        assert!(!calls.have_ended().unwrap());
    }
}
