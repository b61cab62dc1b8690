//! DEL: takes down whatever is there, goes on past what is not, and succeeds twice.
//!
//! The agent deletes the link while it forgets the attachment, because the kernel makes whoever deletes a link wait long
//! after it is gone. If the agent is down, or slow, the plugin deletes the link itself; the agent will learn from that.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::net::if_::if_nametoindex;
use shunt_agent_api::{AttachmentKey, BridgePort, ClientError, Detached, HandedOver, Reply, Request};
use shunt_netlink::link::{Link, Selector, links};

use crate::agent::{Agent, is_away};
use crate::call::{Call, Verb};
use crate::config::{Config, Personality};
use crate::error::Error;
use crate::handed_over;
use crate::ipam::Ipam;
use crate::kept::Kept;
use crate::node::{Alias, NamespaceError, Node, NodeError, Sandbox};
use crate::plan::{interface, key};

/// How long the agent may take over a link.
const PATIENCE: Duration = Duration::from_millis(50);

/// Detaches the container.
pub(crate) fn del(config: &Config, call: &Call) -> Result<(), Error> {
    let key = key(config, call);
    let mut node = Node::open()?;
    let mut sandbox = open_sandbox(&node, call)?;
    let mut failures = Vec::new();
    let host = handed_back(config, call, &key, (&mut node, sandbox.as_mut()), &mut failures);
    failures.extend(taken_down_by_its_maker(config, call, &key, host.as_ref()).err());
    let ipam = Ipam::of(config, call);
    let early = ipam.as_ref().ok().filter(|ipam| ipam.releases_by_interface()).map(Ipam::del);
    let agent = detach(config, &key, host.as_ref(), &mut failures);
    let host = match (host, &agent, &sandbox) {
        (None, AgentSays::Port(port), _) => {
            let found = node.link(Selector::Index(port.host.index))?;
            found.filter(|link| link.name == port.host.name && is_known(config, link, &key))
        }
        // Neither the namespace nor the agent knows which link it was: its mark does.
        (None, AgentSays::Nothing, None) => marked(&mut node, &key)?,
        (host, ..) => host,
    };
    let is_there = host.is_some();
    let removed = match host {
        Some(host) => {
            let patience = if matches!(agent, AgentSays::Nothing) { Duration::ZERO } else { PATIENCE };
            remove(&mut node, &host, patience)
        }
        None => delete_inside(config, &key, sandbox.as_mut()),
    };
    // While a container has the address, nobody else is to get it.
    let released = match early {
        Some(released) => released,
        None if removed.is_ok() => ipam.and_then(|ipam| ipam.del()),
        None => Ok(()),
    };
    failures.extend(removed.err());
    match released {
        // The ADD failed for the same reason, and nothing of it is here: there is nothing that a DEL could be repeated for.
        Err(error) if error.is_of_config() && !is_there && matches!(agent, AgentSays::Unknown) => {}
        released => failures.extend(released.err().map(Error::from)),
    }
    match failures.len() {
        0 => Ok(()),
        _ => Err(Error::Several(failures)),
    }
}

/// The host's end of the container's interface, after other plugins have removed what an earlier uninstallation has handed to them.
fn handed_back(
    config: &Config,
    call: &Call,
    key: &AttachmentKey,
    (node, sandbox): (&mut Node, Option<&mut Sandbox>),
    failures: &mut Vec<Error>,
) -> Option<Link> {
    let agent = Agent::of(config);
    let handed = handed_over::of(agent.socket(), key);
    let found = sandbox.map(|sandbox| host_end(config, key, handed.as_ref(), node, sandbox));
    let host = found.and_then(|found| {
        found.unwrap_or_else(|error| {
            failures.push(error);
            None
        })
    });
    if let Some(handed) = &handed {
        failures.extend(handed_over::take_down(agent.socket(), handed, call).err());
    }
    host
}

/// The container's namespace, if it is still there.
fn open_sandbox(node: &Node, call: &Call) -> Result<Option<Sandbox>, NodeError> {
    if call.netns.is_empty() {
        return Ok(None);
    }
    match node.sandbox(Path::new(&call.netns), call.netns_override) {
        Ok(sandbox) => Ok(Some(sandbox)),
        Err(NodeError::Namespace(NamespaceError::Gone(_))) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The host's end of the container's interface, if it is this plugin's to delete: `shunt` may stand in a chain behind
/// the interface's maker, which wants to find it.
fn host_end(
    config: &Config,
    key: &AttachmentKey,
    handed: Option<&HandedOver>,
    node: &mut Node,
    sandbox: &mut Sandbox,
) -> Result<Option<Link>, Error> {
    let Some(inner) = sandbox.link(Selector::Name(&key.ifname))? else {
        return Ok(None);
    };
    let host = node.host_end(sandbox, &inner)?;
    // An uninstallation has taken its mark off.
    let was_ours = |host: &Link| handed.is_some_and(|handed| handed.host == (host.index, host.name.clone()));
    let is_to_go =
        |host: &Link| config.personality == Personality::Bridge || is_ours(host, key) || was_ours(host);
    Ok(host.filter(is_to_go))
}

/// Whether a link that only the agent's books name is this attachment's: the reference plugin's has no mark.
fn is_known(config: &Config, host: &Link, key: &AttachmentKey) -> bool {
    is_ours(host, key) || config.personality == Personality::Bridge && host.alias.is_none()
}

/// Has the plugin that had this name before take down what it has made: its rules outlive the interface, and would lead the next
/// container's packets astray. Our own interfaces have a mark.
fn taken_down_by_its_maker(
    config: &Config,
    call: &Call,
    key: &AttachmentKey,
    host: Option<&Link>,
) -> Result<(), Error> {
    if config.personality != Personality::Bridge || host.is_some_and(|host| is_ours(host, key)) {
        return Ok(());
    }
    match Kept::find(config, call).map(|kept| kept.run(Verb::Del, config, call)) {
        Some(Err(error)) if host.is_some() => Err(error),
        // Where there is no interface, it may never have made one.
        _ => Ok(()),
    }
}

/// What has the name and is no pair of this node's: the reference plugin deletes that too.
fn delete_inside(config: &Config, key: &AttachmentKey, sandbox: Option<&mut Sandbox>) -> Result<(), Error> {
    match sandbox.filter(|_| config.personality == Personality::Bridge) {
        Some(sandbox) => Ok(sandbox.delete(Selector::Name(&key.ifname))?),
        None => Ok(()),
    }
}

fn is_ours(host: &Link, key: &AttachmentKey) -> bool {
    Alias::is_of(host.alias.as_deref(), key)
}

/// The host's end by its mark.
fn marked(node: &mut Node, key: &AttachmentKey) -> Result<Option<Link>, Error> {
    let links = node.netlink.list(links())?;
    Ok(links.into_iter().find(|link| is_ours(link, key)))
}

/// What came of telling the agent.
#[derive(Debug)]
enum AgentSays {
    /// It is down, going down, or fell silent; that is no failure: it sees at its next start that the link is gone.
    Nothing,
    /// It knew of no such attachment.
    Unknown,
    /// It has forgotten this one.
    Port(Box<BridgePort>),
}

/// Tells the agent to forget the attachment and to delete `host`.
fn detach(config: &Config, key: &AttachmentKey, host: Option<&Link>, failures: &mut Vec<Error>) -> AgentSays {
    let link = host.map(interface);
    match Agent::of(config).ask(Request::Detach { key: key.clone(), link }) {
        Ok(Reply::Detached(Detached { port: Some(port) })) => AgentSays::Port(port),
        Ok(_) => AgentSays::Unknown,
        Err(error) => {
            // An answer that cannot be read is none.
            if matches!(error, ClientError::Refused(_)) && !is_away(&error) {
                failures.push(error.into());
            }
            AgentSays::Nothing
        }
    }
}

/// Waits until the agent has deleted the link; does it here when that takes too long.
fn remove(node: &mut Node, host: &Link, patience: Duration) -> Result<(), Error> {
    let start = Instant::now();
    // Not by netlink: that would wait for the lock under which the kernel, with the link gone, goes on to clean up.
    while if_nametoindex(host.name.as_str()).is_ok_and(|index| index == host.index) {
        if start.elapsed() >= patience {
            return Ok(node.delete(Selector::Index(host.index))?);
        }
        sleep(Duration::from_micros(100));
    }
    Ok(())
}
