//! The order in which the addresses of a range set are tried.

use std::net::IpAddr;

use super::{range::Range, range_set::RangeSet};

/// Every address that a container may have, once: from the one after the last that was given, round to that one again.
///
/// Starting after the last one keeps a released address out of use for as long as possible: a container that crashes
/// and restarts does not meet the connections of its former self.
pub(super) struct RoundRobin<'a> {
    ranges: &'a [Range],
    /// The range that `next` is in.
    index: usize,
    next: IpAddr,
    first: IpAddr,
    begun: bool,
}

impl<'a> RoundRobin<'a> {
    /// Begins after `last`; without it, or when no range contains it (the ranges were changed), at the set's start.
    pub(super) fn new(set: &'a RangeSet, last: Option<IpAddr>) -> Self {
        let ranges = set.ranges();
        let start = last.and_then(|last| {
            let index = ranges.iter().position(|range| range.contains(last))?;
            Some(successor(ranges, index, last))
        });
        let (index, next) = start.unwrap_or((0, ranges[0].start()));
        Self { ranges, index, next, first: next, begun: false }
    }
}

impl<'a> Iterator for RoundRobin<'a> {
    type Item = (IpAddr, &'a Range);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.begun && self.next == self.first {
                return None;
            }
            self.begun = true;
            let (address, range) = (self.next, &self.ranges[self.index]);
            (self.index, self.next) = successor(self.ranges, self.index, address);
            if address != range.gateway() {
                return Some((address, range));
            }
        }
    }
}

/// The address after this one of range `index`, in the next range at its end, in the first range after the last one.
fn successor(ranges: &[Range], index: usize, address: IpAddr) -> (usize, IpAddr) {
    match ranges[index].following(address) {
        Some(following) => (index, following),
        None => {
            let index = (index + 1) % ranges.len();
            (index, ranges[index].start())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::{super::subnet::Subnet, *};

    fn set(subnets: &[&str]) -> RangeSet {
        let range = |subnet: &&str| Range::new(Subnet::parse(subnet).unwrap(), None, None, None).unwrap();
        RangeSet::new(subnets.iter().map(range).collect()).unwrap()
    }

    fn order(set: &RangeSet, last: Option<&str>) -> Vec<String> {
        let last = last.map(|last| last.parse().unwrap());
        RoundRobin::new(set, last).map(|(address, _)| address.to_string()).collect()
    }

    #[test]
    fn the_order_begins_after_the_last_address_and_wraps_through_all_ranges() {
        let set = set(&["10.0.0.0/29", "10.0.1.0/30"]);
        let from_start = ["10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6", "10.0.1.2"];
        assert_eq!(order(&set, None), from_start);
        assert_eq!(
            order(&set, Some("10.0.0.4")),
            ["10.0.0.5", "10.0.0.6", "10.0.1.2", "10.0.0.2", "10.0.0.3", "10.0.0.4"]
        );
        assert_eq!(order(&set, Some("10.0.1.2")), from_start);
    }

    #[test]
    fn a_last_address_outside_the_set_means_the_start() {
        let set = set(&["10.0.0.0/30"]);
        assert_eq!(order(&set, Some("10.9.0.1")), ["10.0.0.2"]);
        assert_eq!(order(&set, Some("fd00::1")), ["10.0.0.2"]);
    }

    #[test]
    fn a_range_that_is_its_gateway_alone_has_nothing() {
        let only: IpAddr = "10.0.0.1".parse().unwrap();
        let range = Range::new(Subnet::parse("10.0.0.0/24").unwrap(), Some(only), Some(only), None).unwrap();
        let set = RangeSet::new(vec![range]).unwrap();
        assert_eq!(order(&set, None), Vec::<String>::new());
        assert_eq!(order(&set, Some("10.0.0.1")), Vec::<String>::new());
    }

    /// Ranges in subnets of their own, of up to 64 addresses.
    fn any_set() -> impl Strategy<Value = RangeSet> {
        let range = (0u8..32, 0u8..32, 0u8..64);
        let family = prop_oneof![Just("10.0"), Just("fd00:")];
        (family, prop::collection::vec(range, 1..4)).prop_map(|(family, ranges)| {
            let range = |(index, (start, length, gateway)): (usize, (u8, u8, u8))| {
                let address = |host: u8| match family {
                    "fd00:" => format!("fd00:0:0:{index}::{host:x}").parse().ok(),
                    _ => format!("10.0.{index}.{host}").parse().ok(),
                };
                let length_of_prefix = if family == "fd00:" { 64 } else { 24 };
                let network: IpAddr = address(0).unwrap();
                let subnet = Subnet::parse(&format!("{network}/{length_of_prefix}")).unwrap();
                Range::new(subnet, address(start), address(start + length), address(gateway)).unwrap()
            };
            RangeSet::new(ranges.into_iter().enumerate().map(range).collect()).unwrap()
        })
    }

    proptest! {
        #[test]
        fn every_address_comes_exactly_once_wherever_the_order_begins(set in any_set(), skip in 0usize..200) {
            let all: Vec<IpAddr> = RoundRobin::new(&set, None).map(|(address, _)| address).collect();
            prop_assert_eq!(all.len() as u128, set.capacity());
            prop_assert!(all.iter().all(|address| set.contains(*address)));

            let last = (!all.is_empty()).then(|| all[skip % all.len()]);
            let again: Vec<IpAddr> = RoundRobin::new(&set, last).map(|(address, _)| address).collect();
            prop_assert_eq!(again.last().copied(), last);
            let (all, again): (HashSet<_>, HashSet<_>) = (all.into_iter().collect(), again.into_iter().collect());
            prop_assert_eq!(all, again);
        }
    }
}
