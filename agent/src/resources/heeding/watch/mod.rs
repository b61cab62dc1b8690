//! A thread that answers at once what cannot wait for the agent's next look: that rules have changed, and that a TCP connection was opened.

mod carried;
mod error;
mod legacy;
mod opened;
mod pair;

use std::io;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use shunt_netlink::RuleChanges;

use self::error::WatchError;
use self::legacy::LegacyCalls;
use self::opened::Opened;
pub(super) use self::opened::can_be_told;
use crate::datapath::HeedingEntry;
use crate::datapath::pins::Pins;

/// How long nothing may happen until the lock of legacy iptables is looked for again.
const AGAIN: u16 = 5000;

/// The thread; it ends with this.
#[derive(Debug)]
pub(super) struct Watcher {
    stop: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    /// Starts it, for the network namespace of the calling thread.
    ///
    /// # Errors
    /// [`WatchError`].
    pub(super) fn start(pins: &Pins, heeding: Arc<HeedingEntry>) -> Result<Self, WatchError> {
        let stop = Arc::new(EventFd::from_flags(EfdFlags::EFD_CLOEXEC).map_err(io::Error::from)?);
        let watched = Watched {
            changes: RuleChanges::open()?,
            legacy: LegacyCalls::open()?,
            opened: Opened::open(pins)?,
            heeding,
            stop: stop.clone(),
        };
        // Nobody has heard of what has changed by now.
        watched.heeding.ask_again()?;
        let watch = move || {
            if let Err(error) = watched.follow() {
                tracing::warn!(%error, "changes of others' rules are not heard of any more: they are heeded within the lease");
            }
        };
        let thread = thread::Builder::new().name("rules".into()).spawn(watch)?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Whether it still answers.
    pub(super) fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        if self.stop.write(1).is_ok()
            && let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("whoever hears of others' rules has failed");
        }
    }
}

struct Watched {
    changes: RuleChanges,
    legacy: LegacyCalls,
    opened: Opened,
    heeding: Arc<HeedingEntry>,
    stop: Arc<EventFd>,
}

impl Watched {
    fn follow(mut self) -> io::Result<()> {
        loop {
            let fds = [self.stop.as_fd(), self.changes.as_fd(), self.legacy.as_fd(), self.opened.as_fd()];
            let mut fds = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN));
            match poll(&mut fds, AGAIN) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            let [is_stopped, has_changed, was_called, was_opened] =
                fds.map(|fd| fd.any().unwrap_or_default());
            if is_stopped {
                return Ok(());
            }
            self.legacy.find_lock();
            let has_changed = has_changed && self.changes.have_come()?;
            if has_changed || was_called && self.legacy.have_ended()? {
                self.heeding.ask_again().map_err(io::Error::other)?;
            }
            if was_opened {
                self.opened.answer();
            }
        }
    }
}
