//! The two places that an attachment connects: the node's network namespace and the container's; and what is asked of the kernel there.

mod alias;
mod bridge_port;
mod error;
mod lock;
mod namespace;
mod routes;
pub(crate) mod sysctl;

use std::os::fd::AsFd as _;
use std::path::Path;

use ipnet::IpNet;
use nix::errno::Errno;
use shunt_netlink::address::delete_address;
use shunt_netlink::link::{self, Link, Selector, delete_link};
use shunt_netlink::namespace_id::{NamespaceId, namespace_id};
use shunt_netlink::{Connection, NetlinkError, unless};

pub(crate) use alias::{Alias, BRIDGE as BRIDGE_MARK, names_of};
pub(crate) use bridge_port::{BridgeSide, holds, port_flags};
pub(crate) use error::NodeError;
pub(crate) use lock::lock_bridge;
pub(crate) use namespace::{Namespace, NamespaceError};
pub(crate) use routes::{InstalledRoute, add_route, installed_routes, replace_route};

/// The namespace in which the plugin was called, where bridges and host ends are.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) namespace: Namespace,
    pub(crate) netlink: Connection,
}

/// A container's namespace.
#[derive(Debug)]
pub(crate) struct Sandbox {
    pub(crate) namespace: Namespace,
    pub(crate) netlink: Connection,
}

impl Node {
    /// Opens the namespace of this thread.
    pub(crate) fn open() -> Result<Self, NodeError> {
        let netlink = Connection::open()?;
        Ok(Self { namespace: Namespace::own(&netlink)?, netlink })
    }

    /// Opens a container's namespace; the node's own only where `own` allows it.
    pub(crate) fn sandbox(&self, path: &Path, own: bool) -> Result<Sandbox, NodeError> {
        let namespace = Namespace::open(path)?;
        if namespace.is(&self.namespace) && !own {
            return Err(NamespaceError::Own.into());
        }
        let netlink = self.namespace.within(&namespace, Connection::open)??;
        Ok(Sandbox { namespace, netlink })
    }

    /// Does `work` inside a container's namespace.
    pub(crate) fn within<T>(&self, sandbox: &Sandbox, work: impl FnOnce() -> T) -> Result<T, NodeError> {
        Ok(self.namespace.within(&sandbox.namespace, work)?)
    }

    /// Looks a link up; none if it is not there.
    pub(crate) fn link(&mut self, selector: Selector<'_>) -> Result<Option<Link>, NetlinkError> {
        self.netlink.get(link::link(selector))
    }

    /// How many ports a bridge has.
    pub(crate) fn ports(&mut self, bridge: u32) -> Result<usize, NetlinkError> {
        let links = self.netlink.list(link::ports(bridge))?;
        Ok(links.iter().filter(|link| link.master == Some(bridge)).count())
    }

    /// How many attachments of ours a bridge has.
    pub(crate) fn attachments(&mut self, bridge: u32) -> Result<usize, NetlinkError> {
        let links = self.netlink.list(link::ports(bridge))?;
        let ports = links.iter().filter(|link| link.master == Some(bridge));
        Ok(ports.filter(|link| Alias::is_mark(link.alias.as_deref())).count())
    }

    /// The end on the node of a container's veth, by the node's own word: indexes are the container's to choose, and another container's
    /// host end may have the one that `inner` names. None if the other end is not on the node.
    pub(crate) fn host_end(&mut self, sandbox: &Sandbox, inner: &Link) -> Result<Option<Link>, NetlinkError> {
        let is_veth = |link: &Link| link.kind.as_deref() == Some("veth");
        let Some(peer) = inner.peer.filter(|_| is_veth(inner)) else { return Ok(None) };
        let Some(host) = self.link(Selector::Index(peer))?.filter(|host| is_veth(host)) else {
            return Ok(None);
        };
        let container = if sandbox.namespace.is(&self.namespace) {
            None
        } else {
            match self.netlink.get(namespace_id(sandbox.namespace.as_fd()))? {
                Some(NamespaceId(Some(id))) => Some(id),
                // No link of the node's leads there.
                _ => return Ok(None),
            }
        };
        Ok((host.peer == Some(inner.index) && host.peer_namespace == container).then_some(host))
    }

    /// Deletes a link, which may be gone already.
    pub(crate) fn delete(&mut self, selector: Selector<'_>) -> Result<(), NetlinkError> {
        unless(self.netlink.run(delete_link(selector)), NetlinkError::is_missing)
    }

    /// Takes an address off a link; either may be gone already.
    pub(crate) fn take_address(&mut self, index: u32, address: IpNet) -> Result<(), NetlinkError> {
        let is_gone =
            |error: &NetlinkError| error.is_missing() || error.errno() == Some(Errno::EADDRNOTAVAIL);
        unless(self.netlink.run(delete_address(index, address)), is_gone)
    }
}

impl Sandbox {
    /// Looks a link up; none if it is not there.
    pub(crate) fn link(&mut self, selector: Selector<'_>) -> Result<Option<Link>, NetlinkError> {
        self.netlink.get(link::link(selector))
    }

    /// Deletes a link, which may be gone already.
    pub(crate) fn delete(&mut self, selector: Selector<'_>) -> Result<(), NetlinkError> {
        unless(self.netlink.run(delete_link(selector)), NetlinkError::is_missing)
    }
}
