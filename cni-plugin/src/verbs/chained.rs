//! Plugins that are only ever behind another one: `portmap`, `bandwidth`; and `vlan`, which is not built at all.

use serde_json::Value;

use super::limit;
use crate::config::{Config, ConfigError, Personality};
use crate::error::Error;
use crate::protocol::{Call, Verb};

/// Passes an attachment through that asks for nothing; says plainly that the rest is not built.
pub(crate) fn run(config: &Config, call: &Call) -> Result<Option<Value>, Error> {
    match call.verb {
        // Limits go with their interface; else nothing was ever made.
        Verb::Del | Verb::Gc => Ok(None),
        Verb::Add => {
            refuse(config)?;
            let missing = ConfigError::NoPrevResult("this plugin must be called behind another one");
            let previous = config.prev_result()?.ok_or(missing)?;
            if config.personality == Personality::Bandwidth {
                limit::add(config, call)?;
            }
            Ok(Some(previous.to_json(config.version)?))
        }
        Verb::Check if config.personality == Personality::Bandwidth => {
            let missing = ConfigError::NoPrevResult("CHECK compares with the result of the ADD");
            config.prev_result()?.ok_or(missing)?;
            limit::check(config, call).map(|()| None)
        }
        _ => refuse(config).map(|()| None),
    }
}

fn refuse(config: &Config) -> Result<(), Error> {
    let runtime = &config.network.runtime_config;
    let key = match config.personality {
        Personality::Portmap if !runtime.port_mappings.is_empty() => "runtimeConfig.portMappings",
        Personality::Bandwidth => return Ok(config.limits().map(drop)?),
        Personality::Vlan => "type",
        _ => return Ok(()),
    };
    Err(ConfigError::NotBuilt { key }.into())
}
