//! STATUS: whether an ADD would work.

use shunt_agent_api::{AgentStatus, Reply, Request};

use crate::agent::Agent;
use crate::call::Call;
use crate::config::Config;
use crate::error::{Error, StatusError};
use crate::ipam::Ipam;

/// Asks the agent and the IPAM.
pub(crate) fn status(config: &Config, call: &Call) -> Result<(), Error> {
    config.bridge()?;
    serves(config, call)
}

/// The same, for a configuration that has been judged.
pub(crate) fn serves(config: &Config, call: &Call) -> Result<(), Error> {
    of_agent(config)?;
    Ok(Ipam::of(config, call).and_then(|ipam| ipam.status()).map_err(StatusError::Ipam)?)
}

/// Asks the agent.
pub(crate) fn of_agent(config: &Config) -> Result<(), Error> {
    match Agent::of(config).ask(Request::Status).map_err(StatusError::Agent)? {
        Reply::Status(AgentStatus { healthy: true, .. }) => Ok(()),
        Reply::Status(status) => Err(StatusError::Unhealthy(status.reasons).into()),
        _ => Err(StatusError::Unclear.into()),
    }
}
