//! Whether the user has had enough: SIGINT and SIGTERM end the watching, and what was counted is said.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nix::sys::signal::{SigSet, Signal};

/// Set by a signal.
#[derive(Clone, Debug)]
pub(super) struct Interrupted(Arc<AtomicBool>);

impl Interrupted {
    /// Takes the signals from now on; without a thread for it they end the program as ever.
    pub(super) fn listen() -> Self {
        let interrupted = Self(Arc::default());
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGINT);
        signals.add(Signal::SIGTERM);
        if signals.thread_block().is_err() {
            return interrupted;
        }
        let told = interrupted.clone();
        let wait = move || {
            if signals.wait().is_ok() {
                told.0.store(true, Ordering::Relaxed);
            }
        };
        if thread::Builder::new().name("signals".into()).spawn(wait).is_err() {
            let _as_before = signals.thread_unblock();
        }
        interrupted
    }

    pub(super) fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
