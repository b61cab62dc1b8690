//! STATUS: whether an ADD would work.

use shunt_agent_api::{AgentStatus, Bandwidth, Reply, Request};

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

/// Asks the agent. What is wrong with one container keeps no other one from its network; bandwidth that is handed out, only
/// those that ask for some.
pub(crate) fn of_agent(config: &Config) -> Result<(), Error> {
    let Reply::Status(AgentStatus { mut obstacles, sold_out, .. }) =
        Agent::of(config).ask(Request::Status).map_err(StatusError::Agent)?
    else {
        return Err(StatusError::Unclear.into());
    };
    if config.limits()? != Bandwidth::default() {
        obstacles.extend(sold_out);
    }
    if obstacles.is_empty() { Ok(()) } else { Err(StatusError::Unhealthy(obstacles).into()) }
}
