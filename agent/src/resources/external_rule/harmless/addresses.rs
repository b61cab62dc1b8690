//! Addresses of both families, in ranges.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

/// The first address of each range with its last. An IPv4 address is the IPv6 address that it is mapped to (RFC 4291, section 2.5.5.2). Ranges do not
/// overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Addresses(BTreeMap<u128, u128>);

/// The IPv4 addresses, as they are mapped.
const V4: RangeInclusive<u128> = 0xffff_0000_0000..=0xffff_ffff_ffff;

/// By which anybody on a link may be reached: link-local addresses and groups of IPv6 (RFC 4291), groups of IPv4 (RFC 5771), and its addresses for all
/// (RFC 919).
const EVERYBODYS: [RangeInclusive<u128>; 5] = [
    0xfe80 << 112..=(0xfec0 << 112) - 1,
    0xff00 << 112..=u128::MAX,
    0xffff_e000_0000..=0xffff_efff_ffff,
    0xffff_ffff_ffff..=0xffff_ffff_ffff,
    0xffff_0000_0000..=0xffff_0000_0000,
];

impl Addresses {
    /// Adds the addresses from one to another, whose bytes are in network order: four or sixteen, those that are missing being any. Says whether they
    /// are addresses.
    #[must_use]
    pub(super) fn insert(&mut self, first: &[u8], last: &[u8], length: usize) -> bool {
        let (Some(first), Some(last)) = (number(first, length, 0), number(last, length, u8::MAX)) else {
            return false;
        };
        if last < first {
            return false;
        }
        self.insert_range(first..=last);
        true
    }

    /// The same, without the last.
    #[must_use]
    pub(super) fn insert_before(&mut self, first: &[u8], end: &[u8], length: usize) -> bool {
        let (Some(first), Some(end)) = (number(first, length, 0), number(end, length, 0)) else {
            return false;
        };
        let Some(last) = end.checked_sub(1).filter(|last| first <= *last) else { return false };
        self.insert_range(first..=last);
        true
    }

    fn insert_range(&mut self, range: RangeInclusive<u128>) {
        let (mut first, mut last) = range.into_inner();
        // Those that overlap become one.
        while let Some((&known, &end)) = self.0.range(..=last).next_back()
            && end >= first
        {
            self.0.remove(&known);
            first = first.min(known);
            last = last.max(end);
        }
        self.0.insert(first, last);
    }

    pub(super) fn add(&mut self, others: &Self) {
        others.0.iter().for_each(|(first, last)| self.insert_range(*first..=*last));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it has addresses by which anybody may be reached, whoever it is.
    pub(super) fn has_everybodys(&self) -> bool {
        EVERYBODYS
            .iter()
            .any(|of| self.0.range(..=of.end()).next_back().is_some_and(|(_, last)| last >= of.start()))
    }

    /// All of both families.
    pub(super) fn every() -> Self {
        Self([(0, u128::MAX)].into())
    }

    /// All of the family whose addresses have so many bytes.
    pub(super) fn every_of(length: usize) -> Self {
        let v4 = Self([V4.into_inner()].into());
        if length == 4 { v4 } else { Self::every().without(&v4) }
    }

    /// Those that the others do not have.
    pub(super) fn without(&self, others: &Self) -> Self {
        let mut left = Self::default();
        for (&first, &last) in &self.0 {
            let mut next = Some(first);
            let overlapping = others.0.range(..=last).filter(|(_, end)| **end >= first);
            for (&begin, &end) in overlapping {
                if let Some(from) = next.filter(|from| *from < begin) {
                    left.0.insert(from, begin - 1);
                }
                next = end.checked_add(1);
            }
            if let Some(from) = next.filter(|from| *from <= last) {
                left.0.insert(from, last);
            }
        }
        left
    }

    /// Those that the others have, too.
    pub(super) fn within(&self, others: &Self) -> Self {
        self.without(&self.without(others))
    }

    pub(super) fn has(&self, address: IpAddr) -> bool {
        let address = match address {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        let before = self.0.range(..=address.to_bits()).next_back();
        before.is_some_and(|(_, last)| *last >= address.to_bits())
    }
}

/// An address of `length` bytes, what is missing at its end filled with `rest`.
fn number(bytes: &[u8], length: usize, rest: u8) -> Option<u128> {
    let filled: Vec<u8> = bytes.iter().copied().chain(std::iter::repeat(rest)).take(length).collect();
    if bytes.len() > length {
        return None;
    }
    match length {
        4 => Some(Ipv4Addr::from(<[u8; 4]>::try_from(filled).ok()?).to_ipv6_mapped().to_bits()),
        16 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(filled).ok()?).to_bits()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_become_one_where_they_overlap() {
        let mut some = Addresses::default();
        assert!(some.insert(&[10, 0, 0, 5], &[10, 0, 0, 9], 4));
        assert!(some.insert(&[10, 1], &[10, 1], 4));
        assert!(some.insert(&[10, 0, 0, 1], &[10, 0, 0, 6], 4));
        assert!(some.insert(&[0xfd, 0], &[0xfd, 0], 16));
        assert!(!some.insert(&[1, 2, 3, 4, 5], &[1, 2, 3, 4, 5], 4), "no address");
        assert!(!some.insert(&[9], &[8], 4), "none at all");
        assert_eq!(some.0.len(), 3);
        let has = |address: &str| some.has(address.parse().unwrap());
        let left = Addresses::every_of(4).without(&some);
        for (inside, outside) in
            [("10.0.0.0", "10.0.0.1"), ("10.0.0.10", "10.0.0.9"), ("255.255.255.255", "fd00::1")]
        {
            assert!(
                left.has(inside.parse().unwrap()) && !left.has(outside.parse().unwrap()),
                "{inside} {outside}"
            );
        }
        assert_eq!(Addresses::every().within(&some), some);
        assert_eq!(Addresses::every().without(&Addresses::every()), Addresses::default());
        assert!(left.has_everybodys() && !some.has_everybodys());
        for inside in ["10.0.0.1", "10.0.0.9", "10.1.2.3", "fd00::1"] {
            assert!(has(inside), "{inside}");
        }
        for outside in ["10.0.0.0", "10.0.0.10", "10.2.0.0", "9.255.255.255", "fd01::", "::ffff:1"] {
            assert!(!has(outside), "{outside}");
        }
    }
}
