//! STATUS: whether an ADD would work.

use shunt_agent_api::{AgentStatus, ClientError, Reply, Request};

use crate::agent;
use crate::config::Config;
use crate::error::Error;
use crate::ipam::{Ipam, IpamError};
use crate::protocol::Call;

/// Why an ADD would not work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StatusError {
    /// The agent does not answer.
    #[error("{0}")]
    Agent(ClientError),
    /// The agent answers, but cannot serve.
    #[error("the shunt agent is not healthy: {}", .0.join("; "))]
    Unhealthy(Vec<String>),
    /// The agent's answer is to another question.
    #[error("the shunt agent does not say how it is")]
    Unclear,
    /// The IPAM cannot serve.
    #[error(transparent)]
    Ipam(IpamError),
}

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
pub(super) fn of_agent(config: &Config) -> Result<(), Error> {
    let answer = agent::connect(config).and_then(|mut agent| agent.ask(Request::Status));
    match answer.map_err(StatusError::Agent)? {
        Reply::Status(AgentStatus { healthy: true, .. }) => Ok(()),
        Reply::Status(status) => Err(StatusError::Unhealthy(status.reasons).into()),
        _ => Err(StatusError::Unclear.into()),
    }
}
