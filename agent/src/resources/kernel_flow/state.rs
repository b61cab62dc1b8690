//! What the agent remembers of its sweeps of `KERNEL_FLOWS`.

use std::thread::JoinHandle;
use std::time::Instant;

use super::shares::{Apart, SweepError};

/// The sweep of `KERNEL_FLOWS`, in the background: conntrack may be large.
#[derive(Debug, Default)]
pub(crate) struct KernelFlows {
    pub(super) last: Option<Instant>,
    pub(super) thread: Option<JoinHandle<Result<Vec<Apart>, SweepError>>>,
    /// Whether the last sweep found containers apart.
    pub(super) are_apart: bool,
    /// Refused flows until then.
    pub(super) refused: u64,
}

impl KernelFlows {
    /// Entries were added that nobody has counted.
    pub(super) fn sweep_soon(&mut self) {
        self.last = None;
    }
}
