//! Errors of the plugin whose name this one has taken.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use crate::call::Failure;

/// The kept plugin failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeptError {
    /// It cannot be run, or has not ended in time.
    #[error("the kept plugin {program} cannot be run: {source}")]
    Run {
        /// Its file.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It said why.
    #[error("the kept plugin {program} failed: {}", failure.msg)]
    Failed {
        /// Its file.
        program: PathBuf,
        /// What it said.
        failure: Failure,
    },
    /// It said nothing that can be read.
    #[error("the kept plugin {program} ended with {status} and said nothing that can be read")]
    Unreadable {
        /// Its file.
        program: PathBuf,
        /// How it ended.
        status: ExitStatus,
    },
}
