//! The configuration of a file and of the command line.

use super::contradictions::contradictions;
use super::{Config, ConfigError, ConfigFile, Options, Origins};

impl Config {
    /// Of a file and of flags, which win over it. What is contradictory is a warning of it.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`].
    pub fn resolve(file: Option<&ConfigFile>, flags: Options) -> Result<Self, ConfigError> {
        let origins = Origins::of(file, &flags);
        let options = flags.or(file.map(ConfigFile::options).transpose()?.unwrap_or_default());
        let faults = contradictions(&options, &origins);
        let mut config = Self { origins, ..options.into() };
        config.warnings.extend(faults.iter().map(ToString::to_string));
        Ok(config)
    }
}
