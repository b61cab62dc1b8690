//! A run of addresses in one subnet.

use std::{fmt, net::IpAddr};

use super::{
    address::{after, bits},
    fault::Fault,
    subnet::Subnet,
};

/// The addresses `start..=end`, without the gateway when that lies among them.
///
/// Invariant: both bounds are in the subnet and `start <= end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    subnet: Subnet,
    start: IpAddr,
    end: IpAddr,
    gateway: IpAddr,
}

impl Range {
    /// Fills in what is absent: the subnet's first address for the start and the gateway, its last one for the end.
    ///
    /// A gateway outside the subnet is accepted, as host-local accepts it.
    pub(super) fn new(
        subnet: Subnet,
        start: Option<IpAddr>,
        end: Option<IpAddr>,
        gateway: Option<IpAddr>,
    ) -> Result<Self, Fault> {
        if let Some(start) = start.filter(|start| !subnet.contains(*start)) {
            return Err(Fault::StartOutside(start, subnet.prefix()));
        }
        if let Some(end) = end.filter(|end| !subnet.contains(*end)) {
            return Err(Fault::EndOutside(end, subnet.prefix()));
        }
        let gateway = gateway.unwrap_or(subnet.first());
        let start = start.unwrap_or(subnet.first());
        let end = end.unwrap_or(subnet.last());
        if bits(start) > bits(end) {
            return Err(Fault::EndBeforeStart { start, end });
        }
        Ok(Self { subnet, start, end, gateway })
    }

    pub(super) fn start(&self) -> IpAddr {
        self.start
    }

    pub(super) fn gateway(&self) -> IpAddr {
        self.gateway
    }

    pub(super) fn prefix_length(&self) -> u8 {
        self.subnet.prefix_length()
    }

    /// Whether the address lies in the range, be it the gateway or not.
    pub(super) fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.start.is_ipv4()
            && (bits(self.start)..=bits(self.end)).contains(&bits(address))
    }

    /// Whether a container may have the address.
    pub(super) fn allocatable(&self, address: IpAddr) -> bool {
        self.contains(address) && address != self.gateway
    }

    pub(super) fn overlaps(&self, other: &Self) -> bool {
        self.contains(other.start) || other.contains(self.start)
    }

    /// How many addresses containers may have.
    pub(super) fn capacity(&self) -> u128 {
        let gateway = u128::from(self.contains(self.gateway));
        (bits(self.end) - bits(self.start)).saturating_add(1 - gateway)
    }

    /// The address after `address`, unless that is the last one.
    pub(super) fn following(&self, address: IpAddr) -> Option<IpAddr> {
        (address != self.end).then(|| after(address, 1))
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.start, self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    fn range(subnet: &str, start: Option<IpAddr>, end: Option<IpAddr>) -> Result<Range, Fault> {
        Range::new(Subnet::parse(subnet).unwrap(), start, end, None)
    }

    #[test]
    fn absent_bounds_default_to_the_whole_subnet_and_its_first_address_as_gateway() {
        let range = range("10.0.0.0/24", None, None).unwrap();
        assert_eq!(range.to_string(), "10.0.0.1-10.0.0.254");
        assert_eq!(range.gateway(), ip("10.0.0.1").unwrap());
        assert_eq!(range.capacity(), 253);
    }

    #[test]
    fn explicit_bounds_may_include_the_network_and_broadcast_addresses() {
        let range = range("10.0.0.0/30", ip("10.0.0.0"), ip("10.0.0.3")).unwrap();
        assert_eq!(range.capacity(), 3);
    }

    #[test]
    fn bounds_outside_the_subnet_or_in_the_wrong_order_are_refused() {
        assert!(matches!(range("10.0.0.0/24", ip("10.0.1.1"), None), Err(Fault::StartOutside(..))));
        assert!(matches!(range("10.0.0.0/24", None, ip("fd00::1")), Err(Fault::EndOutside(..))));
        assert!(matches!(
            range("10.0.0.0/24", ip("10.0.0.9"), ip("10.0.0.5")),
            Err(Fault::EndBeforeStart { .. })
        ));
        // The default end is below the broadcast address.
        assert!(matches!(range("10.0.0.0/24", ip("10.0.0.255"), None), Err(Fault::EndBeforeStart { .. })));
    }

    #[test]
    fn a_range_within_another_overlaps_it_both_ways() {
        let outer = range("10.0.0.0/24", None, None).unwrap();
        let inner = range("10.0.0.0/24", ip("10.0.0.5"), ip("10.0.0.6")).unwrap();
        let apart = range("10.0.1.0/24", None, None).unwrap();
        assert!(outer.overlaps(&inner) && inner.overlaps(&outer));
        assert!(!outer.overlaps(&apart) && !apart.overlaps(&outer));
    }

    #[test]
    fn the_largest_subnets_have_a_capacity() {
        assert_eq!(range("::/0", None, None).unwrap().capacity(), u128::MAX - 1);
        assert_eq!(range("0.0.0.0/0", None, None).unwrap().capacity(), (1 << 32) - 3);
    }
}
