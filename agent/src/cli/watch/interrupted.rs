//! Whether the user has had enough: SIGINT and SIGTERM end the watching, and what was counted is said.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{process, thread};

use nix::sys::signal::{SigSet, Signal};

/// How long the verb may take to end by itself after SIGTERM: it may be writing to somebody who does not read.
const GRACE: Duration = Duration::from_secs(2);

/// Set by a signal.
#[derive(Clone, Debug)]
pub(super) struct Interrupted(Arc<AtomicBool>);

impl Interrupted {
    /// Takes the signals from now on; without a thread for it they end the program as ever. A second signal ends it at once, and so does
    /// one SIGTERM after a while.
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
            let first = signals.wait();
            told.0.store(true, Ordering::Relaxed);
            if first == Ok(Signal::SIGTERM) {
                let late = || {
                    thread::sleep(GRACE);
                    end(Signal::SIGTERM);
                };
                let _or_by_a_second_signal = thread::Builder::new().name("grace".into()).spawn(late);
            }
            end(signals.wait().unwrap_or(Signal::SIGINT));
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

/// Ends the program as shells say it of a signal: 130 for SIGINT, 143 for SIGTERM.
fn end(signal: Signal) {
    process::exit(128 + signal as i32)
}
