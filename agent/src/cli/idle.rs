//! `shunt-agent idle`.

use std::process::ExitCode;

use nix::sys::signal::{SigSet, Signal};

use super::exit::UNREACHABLE;

/// Waits for SIGTERM or SIGINT. They are blocked and taken, not left to their default: a pod's first process has none.
pub(super) fn run() -> ExitCode {
    let ends = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT]);
    match ends.thread_block().and_then(|()| ends.wait()) {
        Ok(_) => ExitCode::SUCCESS,
        Err(_) => UNREACHABLE.into(),
    }
}
