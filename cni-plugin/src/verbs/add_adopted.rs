//! ADD after another plugin that made the interface: its port is handed to the agent, its result passed on.

use serde_json::json;
use shunt_agent_api::{Attached, Client, ClientError, ErrorKind, Reply, Request};

use crate::attach::{Adopted, Node, PortSettings, Sandbox, restrict};
use crate::config::{Bridge, Config};
use crate::error::Error;
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
    let settings = PortSettings::new(false, &port.restrictions);
    let restricted = restrict(port.host.index, settings, port.mac.parse().ok());
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
    if let Err(error) = node.netlink.ask_all(restricted) {
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
