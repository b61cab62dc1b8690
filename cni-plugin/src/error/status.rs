//! STATUS: why an ADD would not work.

use shunt_agent_api::ClientError;

use crate::ipam::IpamError;
use crate::via_agent::ServiceError;

/// Why an ADD would not work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StatusError {
    /// The agent does not answer.
    #[error("{0}")]
    Agent(ClientError),
    /// The service that is to do the calls does not.
    #[error("{0}")]
    Service(ServiceError),
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
