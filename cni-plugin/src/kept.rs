//! The plugin whose name this one has taken: `install --drop-in` keeps it as `NAME.orig`.
//!
//! What it made before the names were changed, and what it is asked to make since because the programs cannot, it alone knows how to take
//! down: rules of iptables, ifb devices. It is given the same environment and configuration, and its result is passed on.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::call::{Call, Failure, Verb};
use crate::config::Config;
use crate::error::{Error, KeptError};
use crate::program;

/// What a plugin is kept as.
const EXTENSION: &str = "orig";

/// How long it may take: iptables waits for its lock.
const PATIENCE: Duration = Duration::from_secs(60);

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

    /// Has the kept plugin, if there is one, take down what it may have made, before the agent's part or after it.
    ///
    /// # Errors
    /// [`KeptError`].
    pub(crate) fn take_down(config: &Config, call: &Call) -> Result<(), Error> {
        Self::find(config, call).map_or(Ok(()), |kept| kept.run(Verb::Del, config, call).map(drop))
    }

    /// Has it do a verb; its output is what the runtime is to be given.
    ///
    /// # Errors
    /// [`KeptError`].
    pub(crate) fn run(&self, verb: Verb, config: &Config, call: &Call) -> Result<String, Error> {
        let program = || self.program.clone();
        let mut command = call.command(&self.program, verb);
        let command = program::by_its_name(&mut command, &self.program);
        let ended = program::run(command, &config.raw, Some(Instant::now() + PATIENCE))
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
