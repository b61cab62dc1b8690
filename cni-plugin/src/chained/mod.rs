//! Plugins that are only ever behind another one: `portmap` and `bandwidth`.

mod limit;
mod map;

use crate::call::{Call, Verb};
use crate::config::{Config, ConfigError, Personality};
use crate::error::Error;
use crate::{gc, status};

/// Passes an attachment through that asks for nothing; says plainly that the rest is not built.
pub(crate) fn run(config: &Config, call: &Call) -> Result<Option<String>, Error> {
    match call.verb {
        Verb::Del if config.personality == Personality::Portmap => {
            map::del(config, call);
            Ok(None)
        }
        Verb::Del if config.personality == Personality::Bandwidth => {
            limit::del(config, call);
            Ok(None)
        }
        // The agent may have made an attachment of another plugin's port.
        Verb::Gc if config.personality == Personality::Bandwidth => gc::attachments(config).map(|()| None),
        Verb::Del | Verb::Gc => Ok(None),
        Verb::Add => {
            refuse(config)?;
            let missing = ConfigError::NoPrevResult("this plugin must be called behind another one");
            let previous = config.prev_result()?.ok_or(missing)?;
            match config.personality {
                Personality::Bandwidth => limit::add(config, call, &previous)?,
                Personality::Portmap => map::add(config, call, &previous)?,
                _ => {}
            }
            Ok(Some(previous.print(config.version)?))
        }
        Verb::Check => {
            let missing = ConfigError::NoPrevResult("CHECK compares with the result of the ADD");
            let previous = config.prev_result()?.ok_or(missing)?;
            match config.personality {
                Personality::Portmap => map::check(config, call, &previous).map(|()| None),
                _ => limit::check(config, call).map(|()| None),
            }
        }
        // What an ADD needs, and it needs nothing that INIT could make ready.
        Verb::Status => refuse(config).and_then(|()| status::of_agent(config)).map(|()| None),
        // Asking again for what is in force changes nothing.
        Verb::Finalize => run(config, &Call { verb: Verb::Add, ..call.clone() }).map(|_| None),
        _ => refuse(config).map(|()| None),
    }
}

fn refuse(config: &Config) -> Result<(), Error> {
    match config.personality {
        Personality::Portmap => Ok(config.host_ports(&[]).map(drop)?),
        Personality::Bandwidth => Ok(config.limits().map(drop)?),
        _ => Ok(()),
    }
}
