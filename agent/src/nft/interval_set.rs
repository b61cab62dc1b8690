//! A set of prefixes of one family, as the kernel's interval sets take it: elements that begin an interval and elements that end one.

use std::net::IpAddr;

use ipnet::IpNet;
use nix::libc;

use super::attribute::Attributes;
use super::batch::Batch;
use super::expression::{octets, value};
use super::names::TABLE;

const SET_TABLE: u16 = 1;
const SET_NAME: u16 = 2;
const SET_FLAGS: u16 = 3;
const SET_KEY_TYPE: u16 = 4;
const SET_KEY_LEN: u16 = 5;
const SET_ID: u16 = 10;
/// Nobody may change it while a rule uses it; so it need not be watched.
const CONSTANT: u32 = 2;
const INTERVAL: u32 = 4;
/// What `nft` shows addresses by (`TYPE_IPADDR`, `TYPE_IP6ADDR`, nftables/datatype.h).
const TYPE_IPADDR: u32 = 7;
const TYPE_IP6ADDR: u32 = 8;

const LIST_TABLE: u16 = 1;
const LIST_SET: u16 = 2;
const LIST_ELEMENTS: u16 = 3;
const LIST_ID: u16 = 4;
const LIST_ELEM: u16 = 1;
const ELEM_KEY: u16 = 1;
const ELEM_FLAGS: u16 = 3;
const INTERVAL_END: u32 = 1;

/// A named set.
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
    /// Adds the set and its elements to a transaction: two messages, however many prefixes there are.
    pub(super) fn add_to(&self, batch: &mut Batch) {
        let is_v4 = self.prefixes.iter().all(|prefix| prefix.addr().is_ipv4());
        let (kind, length) = if is_v4 { (TYPE_IPADDR, 4) } else { (TYPE_IP6ADDR, 16) };
        let set = Attributes::default()
            .text(SET_TABLE, TABLE)
            .text(SET_NAME, &self.name)
            .number(SET_FLAGS, CONSTANT | INTERVAL)
            .number(SET_KEY_TYPE, kind)
            .number(SET_KEY_LEN, length)
            .number(SET_ID, self.id);
        batch.add("a set", libc::NFT_MSG_NEWSET, libc::NLM_F_CREATE, &set);
        let elements =
            intervals(&self.prefixes).into_iter().fold(Attributes::default(), |all, (first, end)| {
                let all = all.nest(LIST_ELEM, element(first));
                match end {
                    Some(end) => all.nest(LIST_ELEM, element(end).number(ELEM_FLAGS, INTERVAL_END)),
                    None => all,
                }
            });
        let list = Attributes::default()
            .text(LIST_TABLE, TABLE)
            .text(LIST_SET, &self.name)
            .number(LIST_ID, self.id)
            .nest(LIST_ELEMENTS, elements);
        batch.add("a set's elements", libc::NFT_MSG_NEWSETELEM, libc::NLM_F_CREATE, &list);
    }
}

fn element(address: IpAddr) -> Attributes {
    Attributes::default().nest(ELEM_KEY, value(&octets(address)))
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
