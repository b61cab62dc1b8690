//! How large the packets are that links are handed, and by which links they leave the node.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use shunt_netlink::link::{PacketSizes, set_packet_sizes};
use shunt_netlink::route::next_hop_of_node;

use super::{Kernel, KernelError};

/// Addresses that nobody has (RFC 5737, RFC 3849): the way there is the default route's.
const ELSEWHERE: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(203, 0, 113, 1)), IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1))];

impl Kernel {
    /// The interfaces of the default routes, by ifindex.
    ///
    /// # Errors
    /// Netlink's.
    pub fn default_interfaces(&mut self) -> Result<BTreeSet<u32>, KernelError> {
        let mut found = BTreeSet::new();
        for to in ELSEWHERE {
            match self.route.get(next_hop_of_node(to)) {
                Ok(hop) => found.extend(hop.filter(|hop| !hop.is_local).map(|hop| hop.index)),
                // There is no route, or one that says no.
                Err(error) if error.errno().is_some() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(found)
    }

    /// Has a link be handed packets of other sizes.
    ///
    /// # Errors
    /// Netlink's.
    pub fn set_packet_sizes(&mut self, index: u32, sizes: PacketSizes) -> Result<(), KernelError> {
        Ok(self.route.run(set_packet_sizes(index, sizes))?)
    }
}
