//! `bandwidth` behind another plugin: limits an attachment of the agent's, or makes one of the reference plugin's port.

use std::path::Path;

use shunt_agent_api::{AgentError, Bandwidth, ClientError, ErrorKind, Request};

use crate::adopt::{adopt, port_found};
use crate::agent::Agent;
use crate::call::Call;
use crate::config::{Bridge, Config};
use crate::error::Error;
use crate::kept::Kept;
use crate::node::Node;
use crate::plan;
use crate::result::AddResult;

/// Limits the attachment; without a limit it asks the agent nothing.
pub(super) fn add(config: &Config, call: &Call, previous: &AddResult) -> Result<(), Error> {
    let key = plan::key(config, call);
    let mut agent = Agent::of(config);
    match ask(config, &mut agent, |bandwidth| Request::Limit { key, bandwidth }) {
        Err(Error::Agent(ClientError::Refused(refusal))) if refusal.kind == ErrorKind::NotAttached => {
            take_in(config, call, &mut agent, previous, refusal)
        }
        answer => answer,
    }
}

/// Hands over the port that a reference plugin has put onto its bridge, with its limits. What is on no bridge is refused.
fn take_in(
    config: &Config,
    call: &Call,
    agent: &mut Agent,
    previous: &AddResult,
    refusal: AgentError,
) -> Result<(), Error> {
    let mut node = Node::open()?;
    let mut sandbox = node.sandbox(Path::new(&call.netns), call.netns_override)?;
    let bridge = Bridge::default();
    let found = port_found(&mut node, &mut sandbox, config, &bridge, call, previous)?;
    if found.is_none() {
        return Err(ClientError::Refused(refusal).into());
    }
    adopt(config, &bridge, call, &mut node, &mut sandbox, agent, previous.clone()).map(drop)
}

/// Whether the limits are in force.
pub(super) fn check(config: &Config, call: &Call) -> Result<(), Error> {
    let key = plan::key(config, call);
    ask(config, &mut Agent::of(config), |bandwidth| Request::CheckLimit { key, bandwidth })
}

/// Takes them away, so that others can have the capacity. They go with the interface as well, so that no agent can keep a DEL from its
/// work; the ifb device of the kept plugin does not.
pub(super) fn del(config: &Config, call: &Call) -> Result<(), Error> {
    let key = plan::key(config, call);
    let _best_effort =
        ask(config, &mut Agent::of(config), |_| Request::Limit { key, bandwidth: Bandwidth::default() });
    if config.limits().is_ok_and(|limits| limits == Bandwidth::default()) {
        return Ok(());
    }
    Kept::take_down(config, call)
}

/// Asks where there is a limit.
fn ask(config: &Config, agent: &mut Agent, request: impl FnOnce(Bandwidth) -> Request) -> Result<(), Error> {
    let limits = config.limits()?;
    if limits != Bandwidth::default() {
        agent.ask(request(limits))?;
    }
    Ok(())
}
