//! Why the node's network namespace, or a container's, cannot be used.

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
    /// A lock on the node's namespace cannot be had.
    #[error("the lock of the node's network namespace cannot be taken: {0}")]
    Lock(std::io::Error),
}
