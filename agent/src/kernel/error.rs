//! Why the kernel's state cannot be changed.

use shunt_netlink::NetlinkError;
use shunt_netlink::namespace::NamespaceError;

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

/// Why a limit cannot be applied.
#[derive(Debug, thiserror::Error)]
pub enum LimitError {
    /// The kernel refused the qdisc.
    #[error("the limit of {ifname}: {source}")]
    Shaper {
        /// The interface.
        ifname: String,
        /// The kernel's word.
        source: NetlinkError,
    },
    /// The container's namespace cannot be reached.
    #[error("the limit of what {ifname} sends: {source}")]
    Sandbox {
        /// The interface in the container.
        ifname: String,
        /// What happened.
        source: NamespaceError,
    },
    /// The container's end is not in the namespace of the request.
    #[error("the limit of what {0} sends: the interface is not in the container's namespace")]
    NoPeer(String),
    /// The thread for it panicked.
    #[error("the limit of what {0} sends: the thread for it panicked")]
    Panicked(String),
}
