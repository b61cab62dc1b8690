//! The plugin whose name this one has taken: `install --drop-in` keeps it as `NAME.orig`.
//!
//! What it made before the names were changed, and what it is asked to make since because the programs cannot, it alone knows how to take
//! down: rules of iptables, ifb devices. It is given the same environment and configuration, and its result is passed on.

use std::io;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use crate::call::{Call, Failure, Verb};
use crate::config::Config;
use crate::error::Error;
use crate::program;

/// What a plugin is kept as.
const EXTENSION: &str = "orig";

/// How long it may take: iptables waits for its lock.
const PATIENCE: Duration = Duration::from_secs(60);

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

/// A kept plugin that was found in CNI_PATH.
#[derive(Debug)]
pub(crate) struct Kept {
    program: PathBuf,
}

impl Kept {
    /// Looks for the plugin that had the name of the configuration's `type`.
    pub(crate) fn find(config: &Config, call: &Call) -> Option<Self> {
        let name = format!("{}.{EXTENSION}", config.network.r#type);
        let found = call.path.iter().map(|folder| folder.join(&name)).find(|path| program::is_program(path));
        found.map(|program| Self { program })
    }

    /// Has it do a verb; its output is what the runtime is to be given.
    ///
    /// # Errors
    /// [`KeptError`].
    pub(crate) fn run(&self, verb: Verb, config: &Config) -> Result<String, Error> {
        let program = || self.program.clone();
        let mut command = Command::new(&self.program);
        command.env("CNI_COMMAND", verb.name());
        let ended = program::run(&mut command, &config.raw, Some(Instant::now() + PATIENCE))
            .map_err(|source| KeptError::Run { program: program(), source })?;
        if ended.status.success() {
            return Ok(String::from_utf8_lossy(&ended.output).trim_end().to_owned());
        }
        Err(match serde_json::from_slice::<Failure>(&ended.output) {
            Ok(failure) => KeptError::Failed { program: program(), failure },
            Err(_) => KeptError::Unreadable { program: program(), status: ended.status },
        }
        .into())
    }
}
