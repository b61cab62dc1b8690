//! The two places that an attachment connects: the node's network namespace and the container's; and what is asked of the kernel there.

mod alias;
mod bridge_port;
mod error;
mod namespace;
mod routes;
pub(crate) mod sysctl;

use std::fs::File;
use std::path::Path;

use nix::fcntl::{Flock, FlockArg};
use shunt_netlink::link::{self, Link, Selector, delete_link};
use shunt_netlink::{Connection, NetlinkError, unless};

pub(crate) use alias::{Alias, BRIDGE as BRIDGE_MARK};
pub(crate) use bridge_port::{BridgeSide, holds, port_flags};
pub(crate) use error::NodeError;
pub(crate) use namespace::{Namespace, NamespaceError};
pub(crate) use routes::{InstalledRoute, add_route, installed_routes};

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
    /// Opens the namespace of this process.
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

    /// Holds off those who would take down an idle bridge, as long as the lock lives.
    ///
    /// The lock is one on the namespace's own file, so there is nothing to create and nothing to clean up.
    pub(crate) fn lock_shared(&self) -> Result<Flock<File>, NodeError> {
        self.lock(FlockArg::LockShared)
    }

    /// Waits until no attachment is being made in this namespace.
    pub(crate) fn lock_exclusive(&self) -> Result<Flock<File>, NodeError> {
        self.lock(FlockArg::LockExclusive)
    }

    fn lock(&self, how: FlockArg) -> Result<Flock<File>, NodeError> {
        let file = self.namespace.file().try_clone().map_err(NodeError::Lock)?;
        Flock::lock(file, how).map_err(|(_, errno)| NodeError::Lock(errno.into()))
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

    /// Deletes a link, which may be gone already.
    pub(crate) fn delete(&mut self, selector: Selector<'_>) -> Result<(), NetlinkError> {
        unless(self.netlink.run(delete_link(selector)), NetlinkError::is_missing)
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
