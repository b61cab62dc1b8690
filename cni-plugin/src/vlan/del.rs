//! DEL: the interface, wherever it still is, and its addresses. It needs neither the master nor the configuration's good sense.

use std::path::Path;

use shunt_netlink::link::{Link, Selector};

use crate::call::Call;
use crate::config::Config;
use crate::del;
use crate::error::Error;
use crate::ipam::Ipam;
use crate::node::{Alias, NamespaceError, Node, NodeError};
use crate::plan::key;

/// Removes the interface `call.ifname`.
pub(super) fn del(config: &Config, call: &Call) -> Result<(), Error> {
    let is_last = Ipam::of(config, call).is_ok_and(|ipam| ipam.releases_by_interface());
    let (device, rest) = match is_last {
        true => {
            let rest = del::del(config, call);
            (delete_device(config, call), rest)
        }
        false => (delete_device(config, call), del::del(config, call)),
    };
    match (device, rest) {
        (Err(device), Err(rest)) => Err(Error::Several(vec![device, rest])),
        (device, rest) => device.and(rest),
    }
}

/// A device of the kernel's. A veth is found by its host end.
fn delete_device(config: &Config, call: &Call) -> Result<(), Error> {
    if call.netns.is_empty() {
        return Ok(());
    }
    let node = Node::open()?;
    let mut sandbox = match node.sandbox(Path::new(&call.netns), call.netns_override) {
        Err(NodeError::Namespace(NamespaceError::Gone(_))) => return Ok(()),
        opened => opened?,
    };
    let Some(link) = sandbox.link(Selector::Name(&call.ifname))? else { return Ok(()) };
    if link.kind.as_deref() != Some("vlan") || !is_ours(config, call, &link) {
        return Ok(());
    }
    Ok(sandbox.delete(Selector::Index(link.index))?)
}

/// By its mark; or it has none, as one of an ADD that was killed, or of the reference plugin's, and is what the configuration describes.
fn is_ours(config: &Config, call: &Call, link: &Link) -> bool {
    match link.alias.as_deref() {
        None => config.vlan_unchecked().is_ok_and(|vlan| link.vlan == Some(vlan.vlan_id)),
        alias => Alias::is_of(alias, &key(config, call)),
    }
}
