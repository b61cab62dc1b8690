//! ADD: the kernel's device where it is wanted and can be had, else the agent's.

use std::path::Path;

use shunt_agent_api::{Reply, Request};
use shunt_netlink::link::{Link, Selector};

use super::device::Device;
use super::joined::Joined;
use super::master::Master;
use super::share::{Wanted, previous};
use crate::add::{Context, make_attachment};
use crate::agent::Agent;
use crate::call::Call;
use crate::config::{Config, ConfigError, Dataplane, Vlan};
use crate::error::{AttachError, Error};
use crate::ipam::Ipam;
use crate::node::{Alias, Node, Sandbox};
use crate::plan::key;
use crate::result::AddResult;

/// Makes the interface `call.ifname`, or leaves nothing behind. `ifname` is the runtime's, which differs in a chain.
pub(super) fn add(config: &Config, vlan: &Vlan, call: &Call, ifname: &str) -> Result<AddResult, Error> {
    let previous = previous(config, vlan.is_chained())?;
    let mut node = Node::open()?;
    let mut sandbox = node.sandbox(Path::new(&call.netns), call.netns_override)?;
    let master = Master::find(vlan, ifname, &mut node, &mut sandbox)?;
    if let Some(existing) = sandbox.link(Selector::Name(&call.ifname))? {
        return Err(in_the_way(config, call, &mut node, &sandbox, &existing)?.into());
    }
    let ipam = Ipam::of(config, call)?;
    let mut agent = Agent::of(config);
    let wants_device = wants_device(config, vlan, &master, &mut node, &sandbox, &mut agent)?;
    let wanted = Wanted { config, vlan, call, master: &master, previous };
    let mut context = Context::new(node, sandbox, agent);
    if wants_device {
        match make_attachment(&Device::new(&wanted)?, &ipam, None, &mut context) {
            Err(Error::Attach(AttachError::NoVlanDevices)) if vlan.dataplane() == Dataplane::Auto => {}
            made => return made,
        }
    }
    let joined = Joined::new(&wanted, &mut context)?;
    context.agent.reach()?;
    make_attachment(&joined, &ipam, None, &mut context)
}

/// Whether a device of the kernel's is to be tried. The agent knows nothing of one: it has no place for limits, and its
/// addresses cannot be told from those of others.
fn wants_device(
    config: &Config,
    vlan: &Vlan,
    master: &Master,
    node: &mut Node,
    sandbox: &Sandbox,
    agent: &mut Agent,
) -> Result<bool, Error> {
    let limited = config.limits()? != shunt_agent_api::Bandwidth::default();
    let why = match vlan.dataplane() {
        Dataplane::Ebpf => return Ok(false),
        _ if limited => "`kernel` cannot limit an interface: `ebpf` can",
        _ if is_checked(master, node, sandbox, agent)? => {
            "`kernel` gives an interface addresses that its parent's `ipspoofchk` does not know: `ebpf` tells it"
        }
        _ => return Ok(true),
    };
    match vlan.dataplane() {
        Dataplane::Kernel => Err(ConfigError::Invalid { key: "dataplane", why: why.to_owned() }.into()),
        _ => Ok(false),
    }
}

/// Whether the master is a container's interface that the agent holds to its addresses.
fn is_checked(master: &Master, node: &mut Node, sandbox: &Sandbox, agent: &mut Agent) -> Result<bool, Error> {
    let Some(host) = master.host(node, sandbox)? else { return Ok(false) };
    if !Alias::is_mark(host.alias.as_deref()) {
        return Ok(false);
    }
    let ports = match agent.ask(Request::Ports)? {
        Reply::Ports(ports) => ports,
        _ => Vec::new(),
    };
    let port = ports.iter().find(|port| port.host_ifindex == host.index);
    Ok(port.is_some_and(|port| port.restrictions.iter().any(|name| name == "ipspoofchk")))
}

/// What an interface that has the name already is.
fn in_the_way(
    config: &Config,
    call: &Call,
    node: &mut Node,
    sandbox: &Sandbox,
    existing: &Link,
) -> Result<AttachError, Error> {
    let host = node.host_end(sandbox, existing)?;
    let key = key(config, call);
    let marks = [existing.alias.as_deref(), host.as_ref().and_then(|host| host.alias.as_deref())];
    let is_ours = marks.into_iter().any(|mark| Alias::is_of(mark, &key));
    Ok(if is_ours { AttachError::Attached(key) } else { AttachError::InterfaceExists(call.ifname.clone()) })
}
