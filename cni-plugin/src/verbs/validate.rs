//! VALIDATE: says what is wrong with a configuration. Touches nothing.

use crate::config::{Config, ConfigError, Personality};
use crate::error::Error;
use crate::ipam::built_in;

/// Looks at every value, as far as that needs no container, agent or file.
pub(crate) fn validate(config: &Config) -> Result<(), Error> {
    match config.personality {
        Personality::Shunt | Personality::Bridge => drop(config.bridge()?),
        Personality::Vlan => return Err(ConfigError::NotBuilt { key: "type" }.into()),
        Personality::Bandwidth => drop(config.limits()?),
        Personality::Portmap => drop(config.host_ports(&[])?),
        Personality::Ipam => {}
    }
    config.prev_result()?;
    if config.built_in_ipam() {
        built_in::validate(config)?;
    }
    Ok(())
}
