//! What is looked for regularly, all at the same moment: however much that is, it wakes a thread once. A timer of tokio's would wake it twice,
//! once for where it lies in the wheel of timers and once when it is due.

use std::io;

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::clock_gettime;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;

/// Seconds between two looks of the process for its sockets' files and at whether the agent's thread works: a look wakes the runtime's thread.
pub(crate) const SELDOM: i64 = 5;

/// Ticks at whole seconds of `CLOCK_MONOTONIC`: a timer of the kernel's, which is read as a pipe is.
#[derive(Debug)]
pub(crate) struct Ticks(Receiver);

impl Ticks {
    /// Ticks at each multiple of so many seconds, by the runtime of the calling thread.
    ///
    /// # Errors
    /// There is no file descriptor left.
    pub(crate) fn every(seconds: i64) -> io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        let now = clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC)?;
        let first = TimeSpec::new((now.tv_sec() / seconds + 1) * seconds, 0);
        let period = TimeSpec::new(seconds, 0);
        timer.set(Expiration::IntervalDelayed(first, period), TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
        Ok(Self(Receiver::from_owned_fd_unchecked(timer.into())?))
    }

    /// Waits for the next tick; what was missed is over. Cancelling it loses nothing.
    ///
    /// # Errors
    /// The runtime's, as it ends.
    pub(crate) async fn tick(&mut self) -> io::Result<()> {
        // How often it was due since (timerfd_create(2)).
        let mut times = [0; size_of::<u64>()];
        self.0.read(&mut times).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use tokio::time::{sleep, timeout};

    use super::*;

    #[tokio::test]
    async fn what_begins_at_different_times_ticks_at_the_same_moment_and_misses_what_it_misses() {
        let mut one = Ticks::every(1).unwrap();
        sleep(Duration::from_millis(300)).await;
        let mut other = Ticks::every(1).unwrap();
        other.tick().await.unwrap();
        // A second may have ended before the other one began.
        let _has_ticked = timeout(Duration::from_millis(200), one.tick()).await;
        one.tick().await.unwrap();
        let begun = Instant::now();
        other.tick().await.unwrap();
        assert!(begun.elapsed() < Duration::from_millis(200), "{:?}", begun.elapsed());
        sleep(Duration::from_millis(2300)).await;
        one.tick().await.unwrap();
        let begun = Instant::now();
        one.tick().await.unwrap();
        assert!(begun.elapsed() > Duration::from_millis(200), "{:?}", begun.elapsed());
    }

    #[tokio::test]
    async fn what_ticks_seldom_ticks_together_with_what_ticks_often() {
        let (mut seldom, mut often) = (Ticks::every(2).unwrap(), Ticks::every(1).unwrap());
        seldom.tick().await.unwrap();
        let begun = Instant::now();
        // That of the same moment, or the one before it.
        often.tick().await.unwrap();
        assert!(begun.elapsed() < Duration::from_millis(200), "{:?}", begun.elapsed());
    }
}
