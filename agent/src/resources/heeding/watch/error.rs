//! Why others' rules cannot be watched.

use std::io;

/// Why it cannot be watched.
#[derive(Debug, thiserror::Error)]
pub(in super::super) enum WatchError {
    /// The kernel's nf_tables, or its connection tracking, cannot be listened to.
    #[error(transparent)]
    Netlink(#[from] shunt_netlink::NetlinkError),
    /// A map cannot be opened.
    #[error(transparent)]
    Map(#[from] aya::maps::MapError),
    /// There is no thread or descriptor for it.
    #[error(transparent)]
    Thread(#[from] io::Error),
}
