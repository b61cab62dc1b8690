//! CAPACITY: what of the node's bandwidth can be handed out, what has been, and what is left. Not in the specification.

use serde_json::Value;
use shunt_agent_api::{Reply, Request};

use crate::agent::Agent;
use crate::config::Config;
use crate::error::{CapacityError, Error};

/// Asks the agent; answers what `shunt-agent capacity --json` prints.
pub(crate) fn capacity(config: &Config) -> Result<Value, Error> {
    match Agent::of(config).ask(Request::Capacity)? {
        Reply::Capacity(report) => Ok(serde_json::to_value(report).map_err(CapacityError::from)?),
        _ => Err(CapacityError::Unclear.into()),
    }
}
