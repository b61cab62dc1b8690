//! ADD after another plugin that made the interface: its port is handed to the agent, its result passed on.

use netlink_packet_route::link::InfoBridgePort;
use serde_json::json;
use shunt_agent_api::{Attached, Client, ClientError, ErrorKind, Reply, Request};

use crate::attach::{Adopted, Node, Sandbox};
use crate::config::{Bridge, Config};
use crate::error::Error;
use crate::netlink::requests;
use crate::protocol::Call;
use crate::result::AddResult;

/// Attaches the interface in `previous`. A failure leaves it as it was.
pub(crate) fn adopt(
    config: &Config,
    bridge: &Bridge,
    call: &Call,
    node: &mut Node,
    sandbox: &mut Sandbox,
    agent: &mut Client,
    mut previous: AddResult,
) -> Result<AddResult, Error> {
    previous.can_be_said_in(config.version)?;
    let Some(port) = Adopted::find(node, sandbox, config, bridge, call, &previous)?.port else {
        return Ok(previous);
    };
    let key = port.key.clone();
    let isolated = port.restrictions.isolated.then_some(port.host.index);
    let attached = match agent.ask(Request::Attach { port }) {
        Ok(attached) => attached,
        // What is attached under this key is not this ADD's to detach.
        Err(ClientError::Refused(refusal)) if refusal.kind == ErrorKind::Exists => {
            return Err(ClientError::Refused(refusal).into());
        }
        Err(error) => {
            let leftovers =
                agent.ask(Request::Detach { key, link: None }).err().map(Error::from).into_iter().collect();
            return Err(Error::from(error).after_undo(leftovers));
        }
    };
    if let Some(host) = isolated
        && let Err(error) =
            node.netlink.ask(requests::set_port_flags(host, vec![InfoBridgePort::Isolated(true)]))
    {
        let leftovers = agent.ask(Request::Detach { key, link: None }).err().map(Error::from);
        return Err(Error::from(error).after_undo(leftovers.into_iter().collect()));
    }
    if let (true, Reply::Attached(Attached { programs })) = (config.network.metadata, attached) {
        let own = previous.interfaces.iter_mut().find(|interface| interface.name == call.ifname);
        if let Some(interface) = own {
            let programs = serde_json::to_value(programs).unwrap_or_default();
            interface.metadata.insert("shunt.dev/mode".to_owned(), json!("adopted"));
            interface.metadata.insert("shunt.dev/programs".to_owned(), programs);
        }
    }
    Ok(previous)
}
