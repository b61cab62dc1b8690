//! CHECK: the attachment as prevResult says it, compared with the kernel, the agent and the IPAM. Changes nothing.

mod finalize;
mod inspection;
mod repair;

use std::path::Path;

use shunt_agent_api::Request;

pub(crate) use finalize::finalize;
pub(crate) use inspection::Inspection;

use crate::adopt::port_found;
use crate::agent::Agent;
use crate::call::Call;
use crate::config::{Config, ConfigError};
use crate::error::{CheckError, Error};
use crate::ipam::Ipam;
use crate::node::Node;

/// Compares.
pub(crate) fn check(config: &Config, call: &Call) -> Result<(), Error> {
    let bridge = config.bridge()?;
    let missing = ConfigError::NoPrevResult("CHECK compares with the result of the ADD");
    let result = config.prev_result()?.ok_or(missing)?;
    let mut node = Node::open()?;
    let mut sandbox = node.sandbox(Path::new(&call.netns), call.netns_override)?;
    let inspection = Inspection { config, call, bridge: &bridge, result: &result };
    let faults = inspection.faults(&mut node, &mut sandbox)?;
    if !faults.is_empty() {
        return Err(CheckError(faults).into());
    }
    if let Some(port) = port_found(&mut node, &mut sandbox, config, &bridge, call, &result)? {
        Agent::of(config).ask(Request::Check { port })?;
    }
    Ok(Ipam::of(config, call)?.check()?)
}
