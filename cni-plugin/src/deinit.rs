//! DEINIT: takes down the bridge that shunt made, and refuses while a container, or anything else, is on it.

use std::io::ErrorKind;

use shunt_leases::{LockError, Sharing};
use shunt_netlink::link::{Selector, delete_link};

use crate::agent::Agent;
use crate::config::Config;
use crate::error::{AttachError, Error};
use crate::node::{BRIDGE_MARK, Node, NodeError, lock_bridge};

/// Takes the bridge down. May be repeated; another's bridge is left alone.
pub(crate) fn deinit(config: &Config) -> Result<(), Error> {
    let bridge = config.bridge_unchecked()?.bridge;
    let mut node = Node::open()?;
    let _lock = match lock_bridge(Agent::of(config).socket(), &bridge, Sharing::Exclusive) {
        // Where the agent never was, nobody makes an attachment.
        Err(LockError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => None,
        locked => Some(locked.map_err(NodeError::from)?),
    };
    let Some(link) =
        node.link(Selector::Name(&bridge))?.filter(|link| link.kind.as_deref() == Some("bridge"))
    else {
        return Ok(());
    };
    match node.ports(link.index)? {
        0 if link.alias.as_deref() == Some(BRIDGE_MARK) => {
            node.netlink.run(delete_link(Selector::Index(link.index)))?;
            Ok(())
        }
        0 => Ok(()),
        ports => Err(AttachError::InUse { bridge, ports }.into()),
    }
}
