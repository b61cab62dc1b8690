//! What the threads of a process do: how often they are woken, and how long they run.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// What each thread of a process has done since it began, by its id.
#[derive(Clone, Debug)]
pub struct Threads(BTreeMap<OsString, Done>);

/// What threads have done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// How often they went to sleep.
    pub sleeps: u64,
    /// Their time on a processor.
    pub ran: Duration,
}

impl Threads {
    /// Of the process with this id. A thread that ends meanwhile has nothing to say.
    ///
    /// # Errors
    /// There is no such process.
    pub fn of(process: u32) -> Result<Self> {
        let folder = format!("/proc/{process}/task");
        let threads = fs::read_dir(&folder).with_context(|| format!("read {folder}"))?;
        let threads = threads.flatten();
        Ok(Self(threads.filter_map(|it| Some((it.file_name(), Done::of(&it.path())?))).collect()))
    }

    /// What all threads have done since; one that ended meanwhile is not counted.
    #[must_use]
    pub fn since(&self, before: &Self) -> Done {
        let mut all = Done::default();
        for (id, now) in &self.0 {
            let before = before.0.get(id).copied().unwrap_or_default();
            all.sleeps += now.sleeps.saturating_sub(before.sleeps);
            all.ran += now.ran.saturating_sub(before.ran);
        }
        all
    }
}

impl Done {
    /// Of a folder in `/proc/PID/task` (`status`: proc_pid_status(5); `schedstat`: Documentation/scheduler/sched-stats.rst).
    fn of(folder: &Path) -> Option<Self> {
        let status = fs::read_to_string(folder.join("status")).ok()?;
        let sleeps = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        let times = fs::read_to_string(folder.join("schedstat")).ok()?;
        let ran = times.split(' ').next()?.parse().ok()?;
        Some(Self { sleeps: sleeps.trim().parse().ok()?, ran: Duration::from_nanos(ran) })
    }
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;
    use std::time::Instant;

    use super::*;

    #[test]
    fn sleeps_and_work_are_counted() {
        let before = Threads::of(std::process::id()).unwrap();
        for _ in 0..5 {
            sleep(Duration::from_millis(1));
        }
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(20) {
            std::hint::black_box(0);
        }
        let done = Threads::of(std::process::id()).unwrap().since(&before);
        assert!(done.sleeps >= 5 && done.ran > Duration::ZERO, "{done:?}");
        assert!(Threads::of(u32::MAX).is_err());
    }
}
