//! The ranges out of which an attachment gets one address.

use std::{fmt, net::IpAddr};

use super::{fault::Fault, range::Range};

/// Ranges that stand for one address of the result, used up in turn.
///
/// Invariant: at least one range, all of one family, none overlapping another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RangeSet {
    ranges: Vec<Range>,
}

impl RangeSet {
    pub(super) fn new(ranges: Vec<Range>) -> Result<Self, Fault> {
        let Some(first) = ranges.first() else {
            return Err(Fault::EmptySet);
        };
        if ranges.iter().any(|range| range.start().is_ipv4() != first.start().is_ipv4()) {
            return Err(Fault::MixedFamilies);
        }
        match find_overlap(ranges.iter().map(|range| (range, ()))) {
            Some(((one, ()), (other, ()))) => Err(Fault::Overlap(one.to_string(), other.to_string())),
            None => Ok(Self { ranges }),
        }
    }

    /// The family of all its ranges.
    pub(super) fn is_ipv4(&self) -> bool {
        self.ranges.first().is_some_and(|range| range.start().is_ipv4())
    }

    pub(super) fn ranges(&self) -> &[Range] {
        &self.ranges
    }

    /// The range that the address lies in.
    pub(super) fn range_of(&self, address: IpAddr) -> Option<&Range> {
        self.ranges.iter().find(|range| range.contains(address))
    }

    pub(super) fn contains(&self, address: IpAddr) -> bool {
        self.range_of(address).is_some()
    }

    /// How many addresses containers may have.
    pub(super) fn capacity(&self) -> u128 {
        self.ranges.iter().map(Range::capacity).fold(0, u128::saturating_add)
    }

    /// How many of these addresses are taken out of the set.
    pub(super) fn taken<'a>(&self, addresses: impl IntoIterator<Item = &'a IpAddr>) -> u128 {
        let allocatable = |address: &&IpAddr| self.ranges.iter().any(|range| range.allocatable(**address));
        addresses.into_iter().filter(allocatable).map(|_| 1).sum()
    }
}

/// A range, and what it is of.
type Owned<'a, T> = (&'a Range, T);

/// Two ranges that share addresses, whatever number of ranges there is: sorted, each is compared with the one before it.
pub(super) fn find_overlap<'a, T: Copy>(
    ranges: impl Iterator<Item = Owned<'a, T>>,
) -> Option<(Owned<'a, T>, Owned<'a, T>)> {
    let mut ranges: Vec<_> = ranges.collect();
    // Stable: of ranges that begin alike the first stays first.
    ranges.sort_by_key(|(range, _)| range.start());
    ranges.windows(2).find(|pair| pair[0].0.overlaps(pair[1].0)).map(|pair| (pair[0], pair[1]))
}

impl fmt::Display for RangeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, range) in self.ranges.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{range}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{super::subnet::Subnet, *};

    fn range(subnet: &str) -> Range {
        Range::new(Subnet::parse(subnet).unwrap(), None, None, None).unwrap()
    }

    #[test]
    fn a_set_must_have_ranges_of_one_family_that_do_not_overlap() {
        assert!(matches!(RangeSet::new(vec![]), Err(Fault::EmptySet)));
        let mixed = vec![range("10.0.0.0/24"), range("fd00::/64")];
        assert!(matches!(RangeSet::new(mixed), Err(Fault::MixedFamilies)));
        let overlapping = vec![range("10.0.0.0/24"), range("10.0.1.0/24"), range("10.0.1.0/25")];
        let Err(Fault::Overlap(one, other)) = RangeSet::new(overlapping) else { panic!("accepted") };
        assert_eq!((one.as_str(), other.as_str()), ("10.0.1.1-10.0.1.254", "10.0.1.1-10.0.1.126"));
    }

    #[test]
    fn gateways_and_foreign_addresses_count_neither_as_capacity_nor_as_taken() {
        let set = RangeSet::new(vec![range("10.0.0.0/29"), range("10.0.1.0/30")]).unwrap();
        assert_eq!(set.capacity(), 6);
        let addresses =
            ["10.0.0.1", "10.0.0.2", "10.0.1.2", "10.9.0.1", "fd00::2"].map(|ip| ip.parse().unwrap());
        assert_eq!(set.taken(&addresses), 2);
        assert_eq!(set.to_string(), "10.0.0.1-10.0.0.6,10.0.1.1-10.0.1.2");
    }
}
