//! Why the kernel's state cannot be changed.

use shunt_netlink::NetlinkError;

use super::limits::LimitError;
use crate::datapath::DatapathError;

/// Why the kernel's state cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// Programs and maps.
    #[error(transparent)]
    Datapath(#[from] DatapathError),
    /// Netlink failed.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// A veth was set up and did not become operational.
    #[error("{0} was set up and did not become operational, or its peer did not")]
    NotOperational(String),
    /// A limit was refused.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// A bridge has a port with a carrier but no carrier itself.
    #[error("bridge {0} stays without a carrier although one of its ports has one")]
    Asleep(String),
    /// A link that was just created does not exist.
    #[error("{0} does not exist any more")]
    Vanished(String),
}
