//! ADD after another plugin that made the interface: its port is handed to the agent, its result passed on.

mod find;

use shunt_agent_api::{AttachmentKey, BridgePort, ClientError, ErrorKind, Reply, Request};

pub(crate) use find::{is_in, port_found};

use crate::agent::Agent;
use crate::call::Call;
use crate::config::{Bridge, Config};
use crate::error::Error;
use crate::mac::Mac;
use crate::metadata;
use crate::node::{BridgeSide, Node, Sandbox, port_flags};
use crate::result::AddResult;

/// Attaches the interface in `previous`. A failure leaves it as it was.
pub(crate) fn adopt(
    config: &Config,
    bridge: &Bridge,
    call: &Call,
    node: &mut Node,
    sandbox: &mut Sandbox,
    agent: &mut Agent,
    mut previous: AddResult,
) -> Result<AddResult, Error> {
    agent.reach()?;
    previous.can_be_expressed_in(config.version)?;
    let Some(port) = port_found(node, sandbox, config, bridge, call, &previous)? else {
        return Ok(previous);
    };
    let (key, limits) = (port.key.clone(), port.bandwidth.clone());
    let side = BridgeSide {
        index: port.host.index,
        bridge: port.bridge.index,
        flags: port_flags(false, &port.restrictions),
        station: port.mac.parse().ok().map(Mac::bytes),
        is_fixed: port.restrictions.is_checked(),
    };
    let attached = hand_over(config, bridge, agent, port)?;
    let restricted = side.restrict(node).and_then(|changes| node.netlink.run_all(changes));
    restricted.map_err(|error| taken_back(bridge, agent, key, error.into()))?;
    let own = previous.interfaces.iter_mut().find(|interface| interface.name == call.ifname);
    if let Some(interface) = own {
        interface.metadata.extend(metadata::of(config, "adopted", &limits, &attached));
    }
    Ok(previous)
}

/// Has the agent attach the port, or update it.
fn hand_over(config: &Config, bridge: &Bridge, agent: &mut Agent, port: BridgePort) -> Result<Reply, Error> {
    let key = port.key.clone();
    let request = if bridge.update_existing {
        Request::Update { port, keeps_mappings: !config.is_asked_for_host_ports() }
    } else {
        Request::Attach { port, set_up: false }
    };
    match agent.ask(request) {
        Err(ClientError::Refused(refusal)) if refusal.kind == ErrorKind::Exists => {
            Err(ClientError::Refused(refusal).into())
        }
        Err(error) => Err(taken_back(bridge, agent, key, error.into())),
        Ok(attached) => Ok(attached),
    }
}

/// The error of an attachment that is taken back. What was attached under this key already is not this ADD's to detach.
fn taken_back(bridge: &Bridge, agent: &mut Agent, key: AttachmentKey, error: Error) -> Error {
    if bridge.update_existing {
        return error;
    }
    // The connection may have failed with the request.
    agent.disconnect();
    let detached = agent.ask(Request::Detach { key, link: None });
    let leftovers = detached.err().map(Error::from);
    error.after_undo(leftovers.into_iter().collect())
}
