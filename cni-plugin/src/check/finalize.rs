//! FINALIZE: after all ADDs of a sandbox, puts right what later plugins disturbed. Prints no result.

use std::path::Path;

use shunt_agent_api::{ClientError, ErrorKind, Request};
use shunt_netlink::link::Selector;

use super::inspection::Inspection;
use super::repair::repair;
use crate::adopt::port_found;
use crate::agent::Agent;
use crate::call::Call;
use crate::config::{Config, ConfigError};
use crate::error::{CheckError, Error};
use crate::node::Node;

/// Repairs, and fails with what cannot be repaired.
pub(crate) fn finalize(config: &Config, call: &Call) -> Result<(), Error> {
    let bridge = config.bridge()?;
    let missing = ConfigError::NoPrevResult("FINALIZE restores the result of the ADD");
    let result = config.prev_result()?.ok_or(missing)?;
    let mut node = Node::open()?;
    let mut sandbox = node.sandbox(Path::new(&call.netns), call.netns_override)?;
    let mut agent = Agent::connect(config)?;
    let inspection = Inspection { config, call, bridge: &bridge, result: &result };
    let faults = inspection.faults(&mut node, &mut sandbox)?;
    let inner = sandbox.link(Selector::Name(&call.ifname))?;
    let (index, station) = inner.map_or((0, None), |link| (link.index, link.mac));
    let is_fixed = bridge.macspoofchk || bridge.ipspoofchk;
    let mut left = repair(faults, &mut node, &mut sandbox, index, (station, is_fixed))?;
    if left.is_empty() {
        left = inspection.faults(&mut node, &mut sandbox)?;
    }
    if !left.is_empty() {
        return Err(CheckError(left).into());
    }
    let Some(port) = port_found(&mut node, &mut sandbox, config, &bridge, call, &result)? else {
        return Ok(());
    };
    match agent.ask(Request::Check { port: port.clone() }) {
        Ok(_) => Ok(()),
        Err(ClientError::Refused(refusal)) if refusal.kind == ErrorKind::Altered => {
            agent.ask(Request::Restore { port })?;
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}
