//! A set of prefixes of one family, as the kernel's interval sets take it: elements that begin an interval and elements that end one.

use std::net::IpAddr;

use ipnet::IpNet;
use nix::libc;

use super::batch::Batch;
use super::expression::octets;
use super::kind::Kind;
use super::named_set::{NamedSet, element};

const INTERVAL: u32 = 4;
const ELEM_FLAGS: u16 = 3;
const INTERVAL_END: u32 = 1;

/// A set of prefixes.
#[derive(Debug)]
pub(super) struct IntervalSet {
    /// Its name in the table.
    pub(super) name: String,
    /// Its number in the transaction.
    pub(super) id: u32,
    /// What is in it: of one family, not empty.
    pub(super) prefixes: Vec<IpNet>,
}

impl IntervalSet {
    /// Adds the set and its elements to a transaction.
    pub(super) fn add_to(&self, batch: &mut Batch) {
        let is_v4 = self.prefixes.iter().all(|prefix| prefix.addr().is_ipv4());
        let set = NamedSet { name: &self.name, id: self.id, key: &[Kind::address(is_v4)] };
        batch.add("a set", libc::NFT_MSG_NEWSET, libc::NLM_F_CREATE, &set.attributes(INTERVAL));
        let elements = intervals(&self.prefixes).into_iter().flat_map(|(first, end)| {
            let end = end.map(|end| element(&octets(end)).number(ELEM_FLAGS, INTERVAL_END));
            [Some(element(&octets(first))), end].into_iter().flatten()
        });
        set.fill(batch, elements.collect());
    }
}

/// Each interval's first address and the one behind its last; none where its last is the family's last. Intervals neither overlap nor touch.
fn intervals(prefixes: &[IpNet]) -> Vec<(IpAddr, Option<IpAddr>)> {
    let mut intervals: Vec<(IpAddr, Option<IpAddr>)> = Vec::new();
    // Sorted, without those within others.
    for prefix in IpNet::aggregate(&prefixes.to_vec()) {
        let (first, behind) = (prefix.network(), next(prefix.broadcast()));
        match intervals.last_mut() {
            Some((_, end)) if *end == Some(first) => *end = behind,
            _ => intervals.push((first, behind)),
        }
    }
    intervals
}

/// The address behind one.
fn next(address: IpAddr) -> Option<IpAddr> {
    match address {
        IpAddr::V4(v4) => u32::from(v4).checked_add(1).map(|next| IpAddr::V4(next.into())),
        IpAddr::V6(v6) => u128::from(v6).checked_add(1).map(|next| IpAddr::V6(next.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_neither_overlap_nor_touch() {
        let of = |prefixes: &[&str]| {
            let prefixes: Vec<_> = prefixes.iter().map(|text| text.parse().unwrap()).collect();
            let text = |end: Option<IpAddr>| end.map_or("-".to_owned(), |end| end.to_string());
            let all = intervals(&prefixes).into_iter();
            all.map(|(first, end)| format!("{first} {}", text(end))).collect::<Vec<_>>()
        };
        assert_eq!(of(&["10.0.1.0/24", "10.0.2.0/23", "10.0.1.7/32"]), ["10.0.1.0 10.0.4.0"]);
        assert_eq!(of(&["255.0.0.0/8", "1.0.0.0/8"]), ["1.0.0.0 2.0.0.0", "255.0.0.0 -"]);
        assert_eq!(of(&["::/0", "fd00::/8"]), [":: -"]);
        assert_eq!(of(&["fd00::/64"]), ["fd00:: fd00:0:0:1::"]);
    }
}
