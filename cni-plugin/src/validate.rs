//! VALIDATE: says what is wrong with a configuration. Touches nothing.

use crate::config::{Config, Personality};
use crate::error::Error;
use crate::ipam::built_in;

/// Looks at every value, as far as that needs no container, agent or file.
pub(crate) fn validate(config: &Config) -> Result<(), Error> {
    match config.personality {
        _ if config.is_vlan() => drop(config.vlan()?),
        Personality::Shunt | Personality::Bridge | Personality::Vlan => drop(config.bridge()?),
        Personality::Bandwidth => drop(config.limits()?),
        Personality::Portmap => drop(config.host_ports(&[])?),
        Personality::Loopback | Personality::Ipam => {}
    }
    config.prev_result()?;
    if config.built_in_ipam() {
        built_in::validate(config)?;
    }
    Ok(())
}
