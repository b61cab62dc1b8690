//! Plugins that are only ever behind another one: `portmap`, `bandwidth`; and `vlan`, which is not built at all.

use serde_json::Value;

use crate::config::{Config, ConfigError, Personality};
use crate::error::Error;
use crate::protocol::{Call, Verb};

/// Passes an attachment through that asks for nothing; says plainly that the rest is not built.
pub(crate) fn run(config: &Config, call: &Call) -> Result<Option<Value>, Error> {
    match call.verb {
        // Nothing was ever made, so there is nothing to take down.
        Verb::Del | Verb::Gc => Ok(None),
        Verb::Add => {
            refuse(config)?;
            let missing = ConfigError::NoPrevResult("this plugin must be called behind another one");
            let previous = config.prev_result()?.ok_or(missing)?;
            Ok(Some(previous.to_json(config.version)?))
        }
        _ => refuse(config).map(|()| None),
    }
}

fn refuse(config: &Config) -> Result<(), Error> {
    let runtime = &config.network.runtime_config;
    let key = match config.personality {
        Personality::Portmap if !runtime.port_mappings.is_empty() => "runtimeConfig.portMappings",
        Personality::Bandwidth if config.limits()? => "ingressRate",
        Personality::Vlan => "type",
        _ => return Ok(()),
    };
    Err(ConfigError::NotBuilt { key }.into())
}
