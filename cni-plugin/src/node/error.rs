//! Why the node's network namespace, or a container's, cannot be used.

use shunt_leases::LockError;
use shunt_netlink::NetlinkError;

use super::namespace::NamespaceError;

/// A namespace cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NodeError {
    /// See [`NamespaceError`].
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// See [`NetlinkError`].
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// The lock of a bridge cannot be had.
    #[error("the bridge cannot be locked: {0}")]
    Lock(#[from] LockError),
}
