//! What the agent's thread waits for: jobs, and the beginning of each second. No other thread is woken for its looks.

use std::io;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;

use crate::ticks::Ticks;

/// The thread's timer, and the runtime by which it waits for two things at once.
#[derive(Debug)]
pub(super) struct Clock {
    ticks: Ticks,
    runtime: Runtime,
}

impl Clock {
    /// Starts it, for the calling thread.
    ///
    /// # Errors
    /// There is no file descriptor left.
    pub(super) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let inside = runtime.enter();
        let ticks = Ticks::every(1)?;
        drop(inside);
        Ok(Self { ticks, runtime })
    }

    /// Waits for the next job, which is `tick` at the beginning of a second; none once nobody is left to send any.
    pub(super) fn next<J>(&mut self, jobs: &mut mpsc::Receiver<J>, tick: J) -> Option<J> {
        let Self { ticks, runtime } = self;
        runtime.block_on(async move {
            tokio::select! {
                job = jobs.recv() => job,
                Ok(()) = ticks.tick() => Some(tick),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_job_comes_at_once_and_a_tick_each_second_until_nobody_is_left_to_send() {
        let mut clock = Clock::start().unwrap();
        let (sender, mut jobs) = mpsc::channel(1);
        sender.blocking_send("job").unwrap();
        let begun = Instant::now();
        // A second may begin at this moment.
        let first = [clock.next(&mut jobs, "tick"), clock.next(&mut jobs, "tick")];
        assert!(first.contains(&Some("job")), "{first:?}");
        while begun.elapsed() < Duration::from_millis(2500) {
            assert_eq!(clock.next(&mut jobs, "tick"), Some("tick"));
        }
        assert!(begun.elapsed() < Duration::from_millis(3700), "{:?}", begun.elapsed());
        drop(sender);
        // The last one may have been due already.
        assert!((0..2).any(|_| clock.next(&mut jobs, "tick").is_none()));
    }
}
