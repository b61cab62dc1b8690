//! DEL: takes down whatever is there, goes on past what is not, and succeeds twice.
//!
//! The agent works on its part while the link is deleted; if it is down, it learns from the link that is gone.

use std::path::Path;

use shunt_agent_api::{AttachmentKey, BridgePort, Client, ClientError, Detached, Reply, Request};

use crate::agent;
use crate::attach::{Alias, Node, key};
use crate::config::{Config, Personality};
use crate::error::Error;
use crate::ipam::Ipam;
use crate::netlink::{Connection, Link, NetlinkError, Selector, requests};
use crate::netns::NamespaceError;
use crate::protocol::Call;

/// Detaches the container.
pub(crate) fn del(config: &Config, call: &Call) -> Result<(), Error> {
    config.bridge_unchecked()?;
    let key = key(config, call);
    let mut node = Node::open()?;
    let sandbox = match call.netns.as_str() {
        "" => None,
        path => match node.sandbox(Path::new(path), call.netns_override) {
            Ok(sandbox) => Some(sandbox),
            Err(Error::Namespace(NamespaceError::Gone(_))) => None,
            Err(error) => return Err(error),
        },
    };
    let mut agent = agent::connect(config).ok();
    if let Some(client) = &mut agent
        && client.send(Request::Detach { key: key.clone() }).is_err()
    {
        agent = None;
    }
    let mut failures = Vec::new();
    if let Some(mut sandbox) = sandbox {
        failures.extend(delete_inner(config, &key, &mut node, &mut sandbox.netlink).err());
    }
    let port = agent.and_then(|client| reply(client, &mut failures));
    failures.extend(delete_host(&key, &mut node, port).err());
    failures.extend(Ipam::of(config, call).and_then(|ipam| ipam.del()).err().map(Error::from));
    match failures.len() {
        0 => Ok(()),
        _ => Err(Error::Several(failures)),
    }
}

/// Deletes the container's end, and with it the host's.
fn delete_inner(
    config: &Config,
    key: &AttachmentKey,
    node: &mut Node,
    inner: &mut Connection,
) -> Result<(), Error> {
    // The reference plugin deletes whatever has the name. `shunt` may stand in a chain behind the interface's maker.
    if config.personality == Personality::Shunt {
        let answers = inner.ask(requests::get_link(Selector::Name(&key.ifname)));
        let link = match answers {
            Ok(answers) => Link::first(&answers),
            Err(error) if error.is_missing() => None,
            Err(error) => return Err(error.into()),
        };
        let Some(peer) = link.and_then(|link| link.peer) else {
            return Ok(());
        };
        if !node.link(Selector::Index(peer))?.is_some_and(|host| is_ours(&host, key)) {
            return Ok(());
        }
    }
    Ok(delete(inner, Selector::Name(&key.ifname))?)
}

/// Deletes a host's end that is left although the container's namespace cannot be had.
fn delete_host(key: &AttachmentKey, node: &mut Node, port: Option<BridgePort>) -> Result<(), Error> {
    let Some(port) = port else {
        return Ok(());
    };
    match node.link(Selector::Index(port.host.index))? {
        Some(host) if is_ours(&host, key) => Ok(delete(&mut node.netlink, Selector::Index(host.index))?),
        _ => Ok(()),
    }
}

fn is_ours(host: &Link, key: &AttachmentKey) -> bool {
    host.alias.as_deref().and_then(Alias::read).as_ref() == Some(key)
}

fn delete(netlink: &mut Connection, link: Selector<'_>) -> Result<(), NetlinkError> {
    match netlink.ask(requests::delete_link(link)) {
        Err(error) if !error.is_missing() => Err(error),
        _ => Ok(()),
    }
}

/// What the agent had on the attachment. A refusal is an error; an agent that falls silent is one that is down.
fn reply(mut agent: Client, failures: &mut Vec<Error>) -> Option<BridgePort> {
    match agent.receive() {
        Ok(Reply::Detached(Detached { port })) => port,
        Err(ClientError::Refused(refusal)) => {
            failures.push(ClientError::Refused(refusal).into());
            None
        }
        Ok(_) | Err(_) => None,
    }
}
