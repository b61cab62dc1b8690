//! `bandwidth` behind another plugin: limits an interface that the agent has already.

use std::path::Path;

use shunt_agent_api::{Bandwidth, BridgePort, Request};

use crate::agent;
use crate::attach::{Adopted, Node};
use crate::config::{Config, ConfigError};
use crate::error::Error;
use crate::protocol::Call;
use crate::result::AddResult;

/// Limits the interface of `previous`; asks nobody anything where there is no limit.
pub(super) fn add(config: &Config, call: &Call, previous: &AddResult) -> Result<(), Error> {
    if let Some(BridgePort { key, bandwidth, .. }) = port(config, call, previous)? {
        agent::connect(config)?.ask(Request::Limit { key, bandwidth })?;
    }
    Ok(())
}

/// Whether the limits are in force.
pub(super) fn check(config: &Config, call: &Call) -> Result<(), Error> {
    let missing = ConfigError::NoPrevResult("CHECK compares with the result of the ADD");
    let previous = config.prev_result()?.ok_or(missing)?;
    if let Some(port) = port(config, call, &previous)? {
        agent::connect(config)?.ask(Request::Check { port })?;
    }
    Ok(())
}

/// The port with its limits; none without limits.
fn port(config: &Config, call: &Call, previous: &AddResult) -> Result<Option<BridgePort>, Error> {
    if config.limits()? == Bandwidth::default() {
        return Ok(None);
    }
    let bridge = config.bridge_unchecked()?;
    let mut node = Node::open()?;
    let mut sandbox = node.sandbox(Path::new(&call.netns), call.netns_override)?;
    // Who would shape an interface that is no port of a bridge?
    let adopted = Adopted::find(&mut node, &mut sandbox, config, &bridge, call, previous)?;
    Ok(Some(adopted.port.ok_or(ConfigError::NotBuilt { key: "type" })?))
}
