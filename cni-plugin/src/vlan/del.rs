//! DEL: the interface, wherever it still is, and its addresses. It needs neither the master nor the configuration's good sense.

use std::path::Path;

use shunt_netlink::link::{Selector, delete_link};

use super::add::is_marked;
use crate::attach::Node;
use crate::config::Config;
use crate::error::Error;
use crate::ipam::Ipam;
use crate::netns::NamespaceError;
use crate::protocol::Call;
use crate::verbs;

/// Removes the interface `call.ifname`.
pub(super) fn del(config: &Config, call: &Call) -> Result<(), Error> {
    let is_last = Ipam::of(config, call).is_ok_and(|ipam| ipam.releases_by_interface());
    let (device, rest) = match is_last {
        true => {
            let rest = verbs::del(config, call);
            (delete_device(config, call), rest)
        }
        false => (delete_device(config, call), verbs::del(config, call)),
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
        Err(Error::Namespace(NamespaceError::Gone(_))) => return Ok(()),
        opened => opened?,
    };
    let Some(link) = is_marked(config, call, &mut sandbox)? else { return Ok(()) };
    match sandbox.netlink.run(delete_link(Selector::Index(link.index))) {
        Err(error) if !error.is_missing() => Err(error.into()),
        _ => Ok(()),
    }
}
