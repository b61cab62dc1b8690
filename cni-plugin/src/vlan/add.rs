//! ADD: the kernel's device where it is wanted and can be had, else the agent's.

use std::path::Path;

use super::master::Master;
use super::{device, joined, share};
use crate::attach::{Alias, AttachError, Node, Sandbox, key};
use crate::config::{Config, ConfigError, Dataplane, Vlan};
use crate::error::Error;
use crate::netlink::{Link, Selector};
use crate::protocol::Call;
use crate::result::AddResult;

/// Makes the interface `call.ifname`, or leaves nothing behind. `ifname` is the runtime's, which differs in a chain.
pub(super) fn add(config: &Config, vlan: &Vlan, call: &Call, ifname: &str) -> Result<AddResult, Error> {
    let previous = share::previous(config, vlan.is_chained())?;
    let mut node = Node::open()?;
    let mut sandbox = node.sandbox(Path::new(&call.netns), call.netns_override)?;
    let master = Master::find(vlan, ifname, &mut node, &mut sandbox)?;
    if let Some(existing) = sandbox.link(Selector::Name(&call.ifname))? {
        return Err(in_the_way(config, call, &mut node, &existing)?.into());
    }
    if wants_device(config, vlan)? {
        match device::make(vlan, &master, call, &mut node, &mut sandbox) {
            Err(Error::Attach(AttachError::NoVlanDevices)) if vlan.dataplane() == Dataplane::Auto => {}
            Err(error) => return Err(error),
            Ok(link) => {
                return device::configure(config, vlan, &master, call, &node, &mut sandbox, &link, previous);
            }
        }
    }
    joined::add(config, vlan, &master, call, &mut node, &mut sandbox, previous)
}

/// Whether a device of the kernel's is to be tried. It has no place for limits, which are the agent's.
fn wants_device(config: &Config, vlan: &Vlan) -> Result<bool, ConfigError> {
    let limited = config.limits()? != shunt_agent_api::Bandwidth::default();
    match vlan.dataplane() {
        Dataplane::Kernel if limited => {
            let why = "`kernel` cannot limit an interface: `ebpf` can".to_owned();
            Err(ConfigError::Invalid { key: "dataplane", why })
        }
        dataplane => Ok(dataplane != Dataplane::Ebpf && !limited),
    }
}

/// What an interface that has the name already is.
fn in_the_way(config: &Config, call: &Call, node: &mut Node, existing: &Link) -> Result<AttachError, Error> {
    let host = match existing.peer.filter(|_| existing.kind.as_deref() == Some("veth")) {
        Some(peer) => node.link(Selector::Index(peer))?,
        None => None,
    };
    let key = key(config, call);
    let marks = [existing.alias.as_deref(), host.as_ref().and_then(|host| host.alias.as_deref())];
    let is_ours = marks.into_iter().flatten().any(|mark| Alias::read(mark).as_ref() == Some(&key));
    Ok(if is_ours { AttachError::Attached(key) } else { AttachError::InterfaceExists(call.ifname.clone()) })
}

/// Whether a link in the container is marked as this attachment's.
pub(super) fn is_marked(config: &Config, call: &Call, sandbox: &mut Sandbox) -> Result<Option<Link>, Error> {
    let link = sandbox.link(Selector::Name(&call.ifname))?;
    let key = key(config, call);
    Ok(link.filter(|link| {
        link.kind.as_deref() == Some("vlan")
            && link.alias.as_deref().is_none_or(|alias| Alias::read(alias).as_ref() == Some(&key))
    }))
}
