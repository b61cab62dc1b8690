//! How many there may be at a time, and for whom.

use std::sync::Arc;

use tokio::sync::Semaphore;

/// How many there may be for root, or for the group's members. No member takes a place of root's.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    pub(crate) connections: Arc<Semaphore>,
    /// Calls that are done or wait: each costs a few kilobytes.
    pub(crate) calls: Arc<Semaphore>,
    /// Calls that are done: each has a message of at most 1 MiB, and a thread.
    pub(crate) places: Arc<Semaphore>,
    /// Those that watch.
    pub(crate) watchers: Arc<Semaphore>,
}

impl Gate {
    pub(crate) fn of([connections, calls, places, watchers]: [usize; 4]) -> Self {
        let [connections, calls, places, watchers] =
            [connections, calls, places, watchers].map(|most| Arc::new(Semaphore::new(most)));
        Self { connections, calls, places, watchers }
    }
}
