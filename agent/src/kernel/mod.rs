//! Links, bridges, addresses and qdiscs of the node, by netlink.
//!
//! Every step is idempotent, so a crash is recovered by repeating it.

mod addresses;
mod bridging;
mod error;
mod limits;
mod links;
mod packets;
mod relocation;
mod reverse_paths;
mod shares;
mod veth_pair;

use shunt_netlink::Connection;
use shunt_netlink::ethtool::Ethtool;

pub use self::error::{KernelError, LimitError};
pub use self::limits::limit_egress_beside;
pub(crate) use self::links::delete_if_named;
pub use self::shares::{FoundShares, Shares, unshare_all};

use crate::datapath::attach::clsact;
use crate::rcu::GracePeriods;
use crate::registry::External;

/// A connection to the kernel, bound to the network namespace of the thread that opened it.
pub struct Kernel {
    route: Connection,
    grace_periods: GracePeriods,
}

impl Drop for Kernel {
    fn drop(&mut self) {
        self.grace_periods.end();
    }
}

impl Kernel {
    /// Opens the connection.
    ///
    /// # Errors
    /// Netlink's.
    pub fn open(grace_periods: GracePeriods) -> Result<Self, KernelError> {
        Ok(Self { route: Connection::open()?, grace_periods })
    }

    /// The switch for expedited grace periods.
    pub fn grace_periods(&self) -> &GracePeriods {
        &self.grace_periods
    }

    /// Lists external filters and qdiscs on an interface, and whether its peer has an XDP program.
    ///
    /// # Errors
    /// Netlink's.
    pub fn external(&mut self, ifindex: u32) -> Result<External, KernelError> {
        let (filters, egress) = clsact::others(&mut self.route, ifindex)?;
        let link = self.link(ifindex)?;
        let queued = link.as_ref().is_some_and(|link| link.queued);
        let xdp = link.is_some_and(|link| link.has_peer_with_xdp());
        Ok(External { filters, queue: egress || queued, xdp })
    }

    /// Whether a link's hardware strips VLAN tags; false if it does not report that.
    ///
    /// # Errors
    /// Netlink's.
    pub fn takes_tags_off(&mut self, index: u32) -> Result<bool, KernelError> {
        Ok(Ethtool::open()?.takes_tags_off(index)?)
    }

    /// Disables VLAN stripping.
    ///
    /// # Errors
    /// Netlink's.
    pub fn leave_tags(&mut self, index: u32) -> Result<(), KernelError> {
        Ok(Ethtool::open()?.leave_tags(index)?)
    }
}
