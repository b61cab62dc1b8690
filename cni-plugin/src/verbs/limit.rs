//! `bandwidth` behind another plugin: limits an attachment that the agent has already.

use shunt_agent_api::{Bandwidth, Request};

use crate::config::Config;
use crate::error::Error;
use crate::protocol::Call;
use crate::{agent, attach};

/// Limits the attachment; asks nobody anything where there is no limit.
pub(super) fn add(config: &Config, call: &Call) -> Result<(), Error> {
    let key = attach::key(config, call);
    ask(config, |bandwidth| Request::Limit { key, bandwidth })
}

/// Whether the limits are in force.
pub(super) fn check(config: &Config, call: &Call) -> Result<(), Error> {
    let key = attach::key(config, call);
    ask(config, |bandwidth| Request::CheckLimit { key, bandwidth })
}

fn ask(config: &Config, request: impl FnOnce(Bandwidth) -> Request) -> Result<(), Error> {
    let limits = config.limits()?;
    if limits != Bandwidth::default() {
        agent::connect(config)?.ask(request(limits))?;
    }
    Ok(())
}
