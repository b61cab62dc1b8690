//! A subnet that addresses can be allocated from.

use std::{fmt, net::IpAddr};

use ipnet::IpNet;
use shunt_netlink::prefix;

use super::{
    address::{after, width},
    fault::Fault,
};
use crate::prefix::first_host;

/// A network address and prefix length.
///
/// Invariant: no host bits are set, and at least two of them exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet(IpNet);

impl Subnet {
    /// Reads `address/prefix`.
    pub(super) fn parse(text: &str) -> Result<Self, Fault> {
        let prefix = prefix::parse(text).map_err(|_| Fault::NotASubnet(text.to_owned()))?;
        let network = prefix.network();
        // The IPv6 spelling of an IPv4 subnet: its prefix length would count in another width.
        if network.to_canonical() != network {
            return Err(Fault::NotASubnet(text.to_owned()));
        }
        if prefix.prefix_len() > width(network) - 2 {
            return Err(Fault::TooSmall(text.to_owned()));
        }
        if prefix.addr() != network {
            return Err(Fault::HostBits { network, given: text.to_owned() });
        }
        Ok(Self(prefix))
    }

    pub(super) fn prefix(&self) -> IpNet {
        self.0
    }

    pub(super) fn prefix_length(&self) -> u8 {
        self.0.prefix_len()
    }

    /// Whether the address is in this subnet; never true across families.
    pub(super) fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address)
    }

    /// The first address after the network's own: the default gateway.
    pub(super) fn first(&self) -> IpAddr {
        first_host(self.0)
    }

    /// The last address that a container may have: IPv4 keeps the broadcast address back.
    pub(super) fn last(&self) -> IpAddr {
        let network = self.0.network();
        let host_bits = u32::from(width(network) - self.0.prefix_len());
        let host_mask = 1u128.checked_shl(host_bits).map_or(u128::MAX, |size| size - 1);
        after(network, host_mask - u128::from(network.is_ipv4()))
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subnet_keeps_back_network_and_broadcast_addresses() {
        let bounds = |text| {
            let subnet = Subnet::parse(text).unwrap();
            format!("{}-{}", subnet.first(), subnet.last())
        };
        assert_eq!(bounds("10.0.0.0/30"), "10.0.0.1-10.0.0.2");
        assert_eq!(bounds("0.0.0.0/0"), "0.0.0.1-255.255.255.254");
        assert_eq!(bounds("fd00::/126"), "fd00::1-fd00::3");
        assert_eq!(bounds("::/0"), "::1-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
    }

    #[test]
    fn a_subnet_without_room_or_with_host_bits_is_refused() {
        for text in ["10.0.0.0/31", "10.0.0.1/32", "fd00::/127"] {
            assert_eq!(Subnet::parse(text), Err(Fault::TooSmall(text.to_owned())));
        }
        assert!(matches!(Subnet::parse("10.0.0.1/24"), Err(Fault::HostBits { .. })));
    }

    #[test]
    fn what_is_no_subnet_is_refused() {
        for text in ["", "10.0.0.0", "010.0.0.0/24", "10.0.0.0/33", "::ffff:10.0.0.0/120"] {
            assert!(matches!(Subnet::parse(text), Err(Fault::NotASubnet(_))), "{text}");
        }
    }
}
