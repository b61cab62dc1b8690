//! Plugins that are only ever behind another one: `portmap` and `bandwidth`.
//!
//! What the agent has not attached, because a plugin made it whose ports the programs do not serve (`ptp`), is left to the plugin that had
//! the name before, if it was kept. So are host ports with conditions that only rules can hold. A DEL asks both.

mod limit;
mod map;

use shunt_agent_api::{ClientError, ErrorKind};

use crate::call::{Call, Verb};
use crate::config::{Config, ConfigError, Personality};
use crate::error::Error;
use crate::kept::Kept;
use crate::{gc, status};

/// Passes an attachment through that asks for nothing; says plainly that the rest is not built.
pub(crate) fn run(config: &Config, call: &Call) -> Result<Option<String>, Error> {
    match call.verb {
        Verb::Del if config.personality == Personality::Portmap => map::del(config, call).map(|()| None),
        Verb::Del if config.personality == Personality::Bandwidth => limit::del(config, call).map(|()| None),
        // The agent may have made an attachment of another plugin's port.
        Verb::Gc if config.personality == Personality::Bandwidth => gc::attachments(config).map(|()| None),
        Verb::Del | Verb::Gc => Ok(None),
        Verb::Add => {
            let missing = ConfigError::NoPrevResult("this plugin must be called behind another one");
            let previous = config.prev_result()?.ok_or(missing)?;
            let added = refuse(config).and_then(|()| match config.personality {
                Personality::Bandwidth => limit::add(config, call, &previous),
                Personality::Portmap => map::add(config, call, &previous),
                _ => Ok(()),
            });
            match added {
                Ok(()) => Ok(Some(previous.print(config.version)?)),
                Err(error) => left_to_the_kept(config, call, error),
            }
        }
        Verb::Check => {
            let missing = ConfigError::NoPrevResult("CHECK compares with the result of the ADD");
            let previous = config.prev_result()?.ok_or(missing)?;
            let checked = match config.personality {
                Personality::Portmap => map::check(config, call, &previous),
                _ => limit::check(config, call),
            };
            checked.map(|()| None).or_else(|error| left_to_the_kept(config, call, error).map(|_| None))
        }
        // What an ADD needs, and it needs nothing that INIT could make ready.
        Verb::Status => refuse(config).and_then(|()| status::of_agent(config)).map(|()| None),
        // Asking again for what is in force changes nothing.
        Verb::Finalize => run(config, &Call { verb: Verb::Add, ..call.clone() }).map(|_| None),
        _ => refuse(config).map(|()| None),
    }
}

/// Has the kept plugin do the verb where the agent does not serve the interface, or the programs do not know a condition; else the error
/// stands, with its cure.
fn left_to_the_kept(config: &Config, call: &Call, error: Error) -> Result<Option<String>, Error> {
    let unserved = match error {
        Error::Config(ConfigError::Condition { .. }) => error,
        Error::Agent(source) if is_not_attached(&source) => Error::NotServed { source, cure: cure(config) },
        error => return Err(error),
    };
    Kept::find(config, call).map_or(Err(unserved), |kept| kept.run(call.verb, config, call).map(Some))
}

fn is_not_attached(error: &ClientError) -> bool {
    matches!(error, ClientError::Refused(refusal) if refusal.kind == ErrorKind::NotAttached)
}

fn cure(config: &Config) -> String {
    let name = &config.network.r#type;
    let key = if config.personality == Personality::Portmap { "portMappings" } else { "bandwidth" };
    format!(
        "`{key}` works on bridges, behind shunt and bridge: put the plugin that does it here into CNI_PATH as {name}.orig, \
         or take `{key}` out of the network"
    )
}

fn refuse(config: &Config) -> Result<(), Error> {
    match config.personality {
        Personality::Portmap => Ok(config.host_ports(&[]).map(drop)?),
        Personality::Bandwidth => Ok(config.limits().map(drop)?),
        _ => Ok(()),
    }
}
