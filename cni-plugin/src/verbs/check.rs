//! CHECK: the attachment as prevResult says it, compared with the kernel, the agent and the IPAM. Changes nothing.

use std::path::Path;

use shunt_agent_api::Request;

use crate::agent;
use crate::attach::{Adopted, Node};
use crate::config::{Config, ConfigError};
use crate::error::Error;
use crate::inspect::{Fault, Inspection};
use crate::ipam::Ipam;
use crate::protocol::Call;

/// The attachment is not as its result says.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub(crate) struct CheckError(pub(crate) Vec<Fault>);

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
    let adopted = Adopted::find(&mut node, &mut sandbox, config, &bridge, call, &result)?;
    if let Some(port) = adopted.port {
        agent::connect(config)?.ask(Request::Check { port })?;
    }
    Ok(Ipam::of(config, call)?.check()?)
}
