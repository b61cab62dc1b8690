//! Addresses of both families, in ranges.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

/// The first address of each range with its last. An IPv4 address is the IPv6 address that it is mapped to (RFC 4291, section 2.5.5.2). Ranges do not
/// overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Addresses(BTreeMap<u128, u128>);

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

    /// Whether it has link-local addresses of IPv6, which every container has (RFC 4291, section 2.5.6).
    pub(super) fn has_link_local(&self) -> bool {
        let (first, last) = (0xfe80_u128 << 112, 0xfec0_u128 << 112);
        self.0.range(..last).next_back().is_some_and(|(_, end)| *end >= first)
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
        for inside in ["10.0.0.1", "10.0.0.9", "10.1.2.3", "fd00::1"] {
            assert!(has(inside), "{inside}");
        }
        for outside in ["10.0.0.0", "10.0.0.10", "10.2.0.0", "9.255.255.255", "fd01::", "::ffff:1"] {
            assert!(!has(outside), "{outside}");
        }
    }
}
