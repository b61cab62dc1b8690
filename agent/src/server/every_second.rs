//! What is looked for each second, all at the same moment: however much that is, it wakes a processor once. A timer of tokio's would wake it
//! twice, once for where it lies in the wheel of timers and once when it is due.

use std::io;

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::clock_gettime;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;

/// Ticks at each whole second of `CLOCK_MONOTONIC`: a timer of the kernel's, which is read as a pipe is.
#[derive(Debug)]
pub(super) struct EverySecond(Receiver);

impl EverySecond {
    /// The first tick comes within a second.
    ///
    /// # Errors
    /// There is no file descriptor left.
    pub(super) fn begin() -> io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        let now = clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC)?;
        let (first, period) = (TimeSpec::new(now.tv_sec() + 1, 0), TimeSpec::new(1, 0));
        timer.set(Expiration::IntervalDelayed(first, period), TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
        Ok(Self(Receiver::from_owned_fd_unchecked(timer.into())?))
    }

    /// Waits for the next tick; what was missed is over. Cancelling it loses nothing.
    ///
    /// # Errors
    /// The runtime's, as it ends.
    pub(super) async fn tick(&mut self) -> io::Result<()> {
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
        let mut one = EverySecond::begin().unwrap();
        sleep(Duration::from_millis(300)).await;
        let mut other = EverySecond::begin().unwrap();
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
}
