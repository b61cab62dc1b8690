//! `portmap` behind another plugin: gives host ports to an attachment that the agent has already.

use shunt_agent_api::{PortMapping, Request};

use crate::agent::Agent;
use crate::call::Call;
use crate::config::Config;
use crate::error::Error;
use crate::kept::Kept;
use crate::plan;
use crate::result::AddResult;

/// Gives the attachment its host ports; without host ports it asks the agent nothing.
pub(super) fn add(config: &Config, call: &Call, previous: &AddResult) -> Result<(), Error> {
    let (key, mappings) = (plan::key(config, call), wanted(config, call, previous)?);
    if !mappings.is_empty() {
        Agent::of(config).ask(Request::Map { key, mappings })?;
    }
    Ok(())
}

/// Whether the host ports are in force.
pub(super) fn check(config: &Config, call: &Call, previous: &AddResult) -> Result<(), Error> {
    let (key, mappings) = (plan::key(config, call), wanted(config, call, previous)?);
    if !mappings.is_empty() {
        Agent::of(config).ask(Request::CheckMap { key, mappings })?;
    }
    Ok(())
}

/// Takes them away. They go with the attachment as well, so that no agent can keep a DEL from its work; rules that the kept plugin made do
/// not.
pub(super) fn del(config: &Config, call: &Call) -> Result<(), Error> {
    if config.network.runtime_config.port_mappings.is_empty() {
        return Ok(());
    }
    let request = Request::Map { key: plan::key(config, call), mappings: Vec::new() };
    // An agent that is away finds the interface gone when it is back.
    let _best_effort = Agent::of(config).ask(request);
    Kept::take_down(config, call)
}

fn wanted(config: &Config, call: &Call, previous: &AddResult) -> Result<Vec<PortMapping>, Error> {
    let ips: Vec<_> = previous.ips_of(&call.ifname).map(|ip| ip.address.addr()).collect();
    Ok(config.host_ports(&ips)?)
}
