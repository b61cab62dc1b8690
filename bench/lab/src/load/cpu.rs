//! Which CPU a thread runs on.

use anyhow::{Context, Result};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use serde::Serialize;

/// The CPUs of the two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Placement {
    /// The client's.
    pub client: usize,
    /// The server's.
    pub server: usize,
}

impl Placement {
    /// Both ends on one CPU: the cost of the path, without waking another CPU.
    pub fn one(cpu: usize) -> Self {
        Self { client: cpu, server: cpu }
    }
}

/// The CPUs that this process may use.
///
/// # Errors
/// When the kernel does not say.
pub fn cpus() -> Result<Vec<usize>> {
    cpus_of(Pid::from_raw(0))
}

/// The CPUs that a thread may use.
///
/// # Errors
/// When the kernel does not say.
pub fn cpus_of(thread: Pid) -> Result<Vec<usize>> {
    let allowed = sched_getaffinity(thread).context("read the CPU affinity")?;
    Ok((0..CpuSet::count()).filter(|cpu| allowed.is_set(*cpu).unwrap_or(false)).collect())
}

/// Pins the calling thread, and whatever it starts.
///
/// # Errors
/// When there is no such CPU, or it may not be used.
pub fn pin(cpu: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu).with_context(|| format!("there is no CPU {cpu}"))?;
    sched_setaffinity(Pid::from_raw(0), &set).with_context(|| format!("pin a thread to CPU {cpu}"))
}
