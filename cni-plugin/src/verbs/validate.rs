//! VALIDATE: says what is wrong with a configuration. Touches nothing.

use crate::config::{Config, ConfigError, Personality};
use crate::error::Error;
use crate::host_local;
use crate::ipam::IpamError;

/// Looks at every value, as far as that needs no container, agent or file.
pub(crate) fn validate(config: &Config) -> Result<(), Error> {
    match config.personality {
        Personality::Shunt | Personality::Bridge => drop(config.bridge()?),
        Personality::Vlan => return Err(ConfigError::NotBuilt { key: "type" }.into()),
        Personality::Bandwidth => drop(config.limits()?),
        Personality::Portmap | Personality::Ipam => {}
    }
    config.prev_result()?;
    if config.built_in_ipam() {
        let ranges = config.network.runtime_config.ip_ranges.as_ref();
        let by_capability = config.network.capabilities.get("ipRanges") == Some(&true.into());
        match host_local::validate(config.ipam(), ranges) {
            // The runtime will bring the ranges.
            Err(host_local::Error::NoRanges) if by_capability => {}
            validated => validated.map_err(IpamError::from)?,
        }
    }
    Ok(())
}
