//! The two places that an attachment connects: the node's network namespace and the container's.

use std::path::Path;

use nix::fcntl::{Flock, FlockArg};
use shunt_netlink::link::{Link, Selector, link};
use shunt_netlink::{Connection, NetlinkError};

use super::AttachError;
use crate::error::Error;
use crate::netns::{Namespace, NamespaceError};

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
    pub(crate) fn open() -> Result<Self, Error> {
        let netlink = Connection::open()?;
        Ok(Self { namespace: Namespace::own(&netlink)?, netlink })
    }

    /// Opens a container's namespace; the node's own only where `own` allows it.
    pub(crate) fn sandbox(&self, path: &Path, own: bool) -> Result<Sandbox, Error> {
        let namespace = Namespace::open(path)?;
        if namespace.is(&self.namespace) && !own {
            return Err(NamespaceError::Own.into());
        }
        let netlink = self.namespace.within(&namespace, Connection::open)??;
        Ok(Sandbox { namespace, netlink })
    }

    /// Holds off those who would take down an idle bridge, as long as the lock lives.
    ///
    /// The lock is one on the namespace's own file, so there is nothing to create and nothing to clean up.
    pub(crate) fn lock_shared(&self) -> Result<Flock<std::fs::File>, AttachError> {
        self.lock(FlockArg::LockShared)
    }

    /// Waits until no attachment is being made in this namespace.
    pub(crate) fn lock_exclusive(&self) -> Result<Flock<std::fs::File>, AttachError> {
        self.lock(FlockArg::LockExclusive)
    }

    fn lock(&self, how: FlockArg) -> Result<Flock<std::fs::File>, AttachError> {
        let file = self.namespace.file().try_clone().map_err(AttachError::Lock)?;
        Flock::lock(file, how).map_err(|(_, errno)| AttachError::Lock(errno.into()))
    }

    /// Looks a link up; none if it is not there.
    pub(crate) fn link(&mut self, selector: Selector<'_>) -> Result<Option<Link>, NetlinkError> {
        self.netlink.get(link(selector))
    }
}

impl Sandbox {
    /// Looks a link up; none if it is not there.
    pub(crate) fn link(&mut self, selector: Selector<'_>) -> Result<Option<Link>, NetlinkError> {
        self.netlink.get(link(selector))
    }
}
