//! CAPACITY: what of the node's bandwidth can be handed out, what has been, and what is left. Not in the specification.

use serde_json::Value;
use shunt_agent_api::{Reply, Request};

use crate::agent;
use crate::config::Config;
use crate::error::Error;

/// The agent's answer is not the books.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CapacityError {
    /// It is to another question.
    #[error("the shunt agent does not say what capacity there is")]
    Unclear,
    /// It cannot be printed.
    #[error("the shunt agent's answer: {0}")]
    Json(#[from] serde_json::Error),
}

/// Asks the agent; answers what `shunt-agent capacity --json` prints.
pub(crate) fn capacity(config: &Config) -> Result<Value, Error> {
    match agent::connect(config)?.ask(Request::Capacity)? {
        Reply::Capacity(report) => Ok(serde_json::to_value(report).map_err(CapacityError::from)?),
        _ => Err(CapacityError::Unclear.into()),
    }
}
