//! What the agent remembers of translated connections.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use super::pairs::Evictions;
use super::volumes::HostPortCounters;
use crate::resources::host_port::connected_peers::Unfound;

/// The sweep of `ASSURED` and `FLOWS`, in the background: full maps take longer than an ADD may wait.
#[derive(Debug, Default)]
pub(crate) struct Sweeping {
    pub(crate) last: Option<Instant>,
    pub(crate) thread: Option<JoinHandle<()>>,
    /// Whether entries may be left although no host port exists.
    pub(crate) leftovers: bool,
    /// How many have begun; each one's number.
    pub(crate) begun: u64,
    pub(crate) shared: Shared,
}

impl Sweeping {
    /// The latest sweep that has found no connection that a container had begun; 0 if there was none.
    pub(crate) fn latest_without_masqueraded(&self) -> u64 {
        self.shared.without_masqueraded.load(Ordering::Relaxed)
    }
}

/// What the sweep tells the agent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared {
    /// The percentage of `ASSURED` in use, as of the last sweep.
    pub(crate) in_use: Arc<AtomicU32>,
    /// The latest sweep that has found no connection that a container had begun.
    pub(crate) without_masqueraded: Arc<AtomicU64>,
    pub(crate) evictions: Arc<Mutex<Evictions>>,
    pub(crate) counters: Arc<Mutex<HostPortCounters>>,
    /// The counter slots of containers that may have no more.
    pub(crate) full: Arc<Mutex<HashSet<u32>>>,
    /// Connected UDP sockets that the last sweep has not found.
    pub(crate) unfound: Arc<Mutex<Unfound>>,
}

pub(crate) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
