//! What can be wrong with a key of the configuration.

use std::net::IpAddr;

use ipnet::IpNet;

/// What is wrong with a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The value has another JSON type than this one.
    #[error("must be {0}")]
    Type(&'static str),
    /// A range object without a `subnet`.
    #[error("has no subnet")]
    NoSubnet,
    /// Not `address/prefix`.
    #[error("{0:?} is not a subnet such as 10.1.0.0/16")]
    NotASubnet(String),
    /// Not an IP address.
    #[error("{0:?} is not an IP address")]
    NotAnAddress(String),
    /// Fewer than two host bits.
    #[error("{0} is too small to allocate from")]
    TooSmall(String),
    /// An interface's address where the network's is needed.
    #[error("{given} has host bits set, its network address is {network}")]
    HostBits {
        /// The network address.
        network: IpAddr,
        /// What was written instead.
        given: String,
    },
    /// `rangeStart` is not in the subnet.
    #[error("{0} is not in {1}")]
    StartOutside(IpAddr, IpNet),
    /// `rangeEnd` is not in the subnet.
    #[error("{0} is not in {1}")]
    EndOutside(IpAddr, IpNet),
    /// The range has no addresses.
    #[error("{end} is before the range's start, {start}")]
    EndBeforeStart {
        /// The first address.
        start: IpAddr,
        /// The last address.
        end: IpAddr,
    },
    /// A range set without a range.
    #[error("is an empty range set")]
    EmptySet,
    /// IPv4 and IPv6 ranges in one set.
    #[error("mixes address families, each needs a range set of its own")]
    MixedFamilies,
    /// Two ranges share addresses.
    #[error("{0} and {1} overlap")]
    Overlap(String, String),
    /// More range sets than an interface has addresses.
    #[error("has {0} range sets, which are more than {1}")]
    TooMany(usize, usize),
    /// A route that cannot be understood.
    #[error("{0}")]
    Route(String),
}

impl Fault {
    /// Which key of a range object is to blame, as the end of a path; empty when it is the object.
    pub(super) fn range_key(&self) -> &'static str {
        match self {
            Self::StartOutside(..) => ".rangeStart",
            Self::EndOutside(..) | Self::EndBeforeStart { .. } => ".rangeEnd",
            _ => "",
        }
    }
}
