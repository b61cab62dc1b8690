//! What the rules of a chain do, expression by expression, and the elements of the sets that they look up.

use std::collections::BTreeSet;

use netlink_packet_core::NLM_F_DUMP;
use nix::libc;

use crate::attribute::{attributes, find, text};
use crate::connection::Connection;
use crate::error::NetlinkError;
use crate::nfnetlink;
use crate::request::{Reply, Request};

use super::{GET_RULE, NFTA_RULE_CHAIN, NFTA_RULE_EXPRESSIONS, NFTA_RULE_TABLE, named, number};

const GET_SET: u16 = (libc::NFNL_SUBSYS_NFTABLES as u16) << 8 | libc::NFT_MSG_GETSET as u16;
const GET_ELEMENTS: u16 = (libc::NFNL_SUBSYS_NFTABLES as u16) << 8 | libc::NFT_MSG_GETSETELEM as u16;

// linux/netfilter/nf_tables.h; `libc` has none of them.
const NFTA_EXPR_NAME: u16 = 1;
const NFTA_EXPR_DATA: u16 = 2;
const NFTA_DATA_VALUE: u16 = 1;
const NFTA_DATA_VERDICT: u16 = 2;
const NFTA_VERDICT_CODE: u16 = 1;
const NFTA_VERDICT_CHAIN: u16 = 2;
const NFTA_SET_ELEM_LIST_TABLE: u16 = 1;
const NFTA_SET_ELEM_LIST_SET: u16 = 2;
const NFTA_SET_ELEM_LIST_ELEMENTS: u16 = 3;
const NFTA_SET_ELEM_KEY: u16 = 1;
const NFTA_SET_ELEM_DATA: u16 = 2;
const NFTA_SET_ELEM_FLAGS: u16 = 3;
const NFTA_SET_ELEM_TIMEOUT: u16 = 4;
const NFTA_SET_ELEM_EXPIRATION: u16 = 5;
const NFTA_SET_ELEM_EXPR: u16 = 7;
const NFTA_SET_ELEM_KEY_END: u16 = 10;
const NFTA_SET_ELEM_EXPRESSIONS: u16 = 11;

const NFTA_DYNSET_SET_NAME: u16 = 1;

const NFTA_SET_TABLE: u16 = 1;
const NFTA_SET_NAME: u16 = 2;
const NFTA_SET_FLAGS: u16 = 3;
const NFTA_SET_EXPR: u16 = 17;
const NFTA_SET_EXPRESSIONS: u16 = 18;

/// `NFT_SET_EVAL`.
const WRITTEN_BY_PACKETS: u32 = 0x20;

/// `NFT_SET_ELEM_INTERVAL_END`.
const ENDS_INTERVAL: u32 = 1;

/// A table of a family.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TableOf {
    /// `NFPROTO_INET`, `NFPROTO_BRIDGE`…
    pub family: u8,
    /// Its name.
    pub name: String,
}

/// One expression of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression {
    /// Its kind: `ct`, `limit`…
    pub name: String,
    /// The attributes of its kind, in the kernel's own encoding.
    pub data: Vec<u8>,
}

impl Expression {
    /// The value of an attribute.
    pub fn attribute(&self, kind: u16) -> Option<&[u8]> {
        find(&self.data, kind)
    }

    /// A number, which nf_tables has in network order.
    pub fn number(&self, kind: u16) -> Option<u32> {
        self.attribute(kind).and_then(number)
    }

    /// A name.
    pub fn text(&self, kind: u16) -> Option<String> {
        self.attribute(kind).map(text)
    }

    /// The bytes of a constant (`NFTA_DATA_VALUE`).
    pub fn value(&self, kind: u16) -> Option<&[u8]> {
        find(self.attribute(kind)?, NFTA_DATA_VALUE)
    }

    /// What is decided (`NFTA_DATA_VERDICT`).
    pub fn verdict(&self, kind: u16) -> Option<Verdict> {
        Verdict::read(self.attribute(kind)?)
    }
}

/// What a rule or an element decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// `NF_ACCEPT`, `NFT_JUMP`…
    pub code: i32,
    /// The chain to go on with.
    pub chain: Option<String>,
}

impl Verdict {
    /// Out of `struct nft_data`'s attributes.
    fn read(data: &[u8]) -> Option<Self> {
        let verdict = find(data, NFTA_DATA_VERDICT)?;
        let code = find(verdict, NFTA_VERDICT_CODE)?.try_into().ok().map(i32::from_be_bytes)?;
        Some(Self { code, chain: find(verdict, NFTA_VERDICT_CHAIN).map(text) })
    }
}

/// An element of a set or of a map of verdicts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// Its key; nothing where it stands for all others. The first of several, where they are intervals.
    pub key: Vec<u8>,
    /// The last key of an interval, where the element says so.
    pub last: Option<Vec<u8>>,
    /// Whether it is the first key that an interval before it does not have (`NFT_SET_ELEM_INTERVAL_END`).
    pub ends_interval: bool,
    /// Whether it goes by itself.
    pub expires: bool,
    /// What is decided where it is found; none in a set.
    pub verdict: Option<Verdict>,
    /// The kinds of expressions of its own that a packet meets which finds it: `counter`, `limit`…
    pub expressions: Vec<String>,
}

/// A set, without its elements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    /// Whether packets write its elements, which no generation tells of: as it says itself (`NFT_SET_EVAL`), for rules may without
    /// ([`sets_written_in`]).
    pub is_written_by_packets: bool,
    /// The kinds of expressions that each of its elements has.
    pub expressions: Vec<String>,
}

/// A rule: its expressions in their order.
struct Rule(Vec<Expression>);

impl Reply for Rule {
    fn read(payload: &[u8]) -> Option<Self> {
        let list = find(payload.get(nfnetlink::HEADER..)?, NFTA_RULE_EXPRESSIONS).unwrap_or_default();
        let expressions = attributes(list).filter_map(|one| {
            let name = text(find(one.value(), NFTA_EXPR_NAME)?);
            Some(Expression { name, data: find(one.value(), NFTA_EXPR_DATA).unwrap_or_default().to_vec() })
        });
        Some(Self(expressions.collect()))
    }
}

/// The elements in one message.
struct Elements(Vec<Element>);

impl Reply for Elements {
    fn read(payload: &[u8]) -> Option<Self> {
        let list = find(payload.get(nfnetlink::HEADER..)?, NFTA_SET_ELEM_LIST_ELEMENTS)?;
        let elements = attributes(list).map(|one| {
            let value = |kind| find(one.value(), kind).and_then(|key| find(key, NFTA_DATA_VALUE));
            let flags = find(one.value(), NFTA_SET_ELEM_FLAGS).and_then(number).unwrap_or_default();
            let verdict = find(one.value(), NFTA_SET_ELEM_DATA).and_then(Verdict::read);
            // The kernel tells a timeout only where it is not the set's, and zero of what stays in a set with one.
            let has_timeout =
                find(one.value(), NFTA_SET_ELEM_TIMEOUT).is_some_and(|it| it.iter().any(|byte| *byte != 0));
            let expires = has_timeout || find(one.value(), NFTA_SET_ELEM_EXPIRATION).is_some();
            Element {
                key: value(NFTA_SET_ELEM_KEY).unwrap_or_default().to_vec(),
                last: value(NFTA_SET_ELEM_KEY_END).map(<[u8]>::to_vec),
                ends_interval: flags & ENDS_INTERVAL != 0,
                expires,
                verdict,
                expressions: kinds(one.value(), [NFTA_SET_ELEM_EXPR, NFTA_SET_ELEM_EXPRESSIONS]),
            }
        });
        Some(Self(elements.collect()))
    }
}

/// The rules of a chain in their order; none where it is gone.
///
/// # Errors
/// Netlink's.
pub fn rules_of_chain(table: &TableOf, chain: &str) -> Result<Vec<Vec<Expression>>, NetlinkError> {
    let names = [(NFTA_RULE_TABLE, table.name.as_str()), (NFTA_RULE_CHAIN, chain)];
    let rules = list::<Rule>("list the rules of a chain of nf_tables", GET_RULE, table.family, &names)?;
    Ok(rules.into_iter().map(|Rule(expressions)| expressions).collect())
}

/// The names of the sets to which rules of a table add elements, or from which they take some, as packets come by.
///
/// # Errors
/// Netlink's.
pub fn sets_written_in(table: &TableOf) -> Result<BTreeSet<String>, NetlinkError> {
    let names = [(NFTA_RULE_TABLE, table.name.as_str())];
    let rules = list::<Rule>("list the rules of a table of nf_tables", GET_RULE, table.family, &names)?;
    let writing = rules.iter().flat_map(|Rule(rule)| rule).filter(|expression| expression.name == "dynset");
    Ok(writing.filter_map(|expression| expression.text(NFTA_DYNSET_SET_NAME)).collect())
}

/// The elements of a set; none where it is gone.
///
/// # Errors
/// Netlink's.
pub fn elements_of(table: &TableOf, set: &str) -> Result<Vec<Element>, NetlinkError> {
    let names = [(NFTA_SET_ELEM_LIST_TABLE, table.name.as_str()), (NFTA_SET_ELEM_LIST_SET, set)];
    let what = "list the elements of a set of nf_tables";
    let elements = list::<Elements>(what, GET_ELEMENTS, table.family, &names)?;
    Ok(elements.into_iter().flat_map(|Elements(elements)| elements).collect())
}

/// What is known of a set; nothing where it is gone.
///
/// # Errors
/// Netlink's.
pub fn set_of(table: &TableOf, set: &str) -> Result<Set, NetlinkError> {
    let payload = named(table.family, &[(NFTA_SET_TABLE, &table.name), (NFTA_SET_NAME, set)]);
    let request = Request::raw("read a set of nf_tables", GET_SET, 0, payload);
    match Connection::of(libc::NETLINK_NETFILTER)?.get(request) {
        Err(error) if error.is_missing() => Ok(Set::default()),
        found => Ok(found?.unwrap_or_default()),
    }
}

impl Reply for Set {
    fn read(payload: &[u8]) -> Option<Self> {
        let set = payload.get(nfnetlink::HEADER..)?;
        let flags = find(set, NFTA_SET_FLAGS).and_then(number).unwrap_or_default();
        Some(Self {
            is_written_by_packets: flags & WRITTEN_BY_PACKETS != 0,
            expressions: kinds(set, [NFTA_SET_EXPR, NFTA_SET_EXPRESSIONS]),
        })
    }
}

/// The kinds of the expressions that a set or an element has: one, or a list of them.
fn kinds(of: &[u8], [one, several]: [u16; 2]) -> Vec<String> {
    let list = attributes(find(of, several).unwrap_or_default());
    let one = find(of, one).and_then(|it| find(it, NFTA_EXPR_NAME)).map(text);
    one.into_iter().chain(list.filter_map(|it| find(it.value(), NFTA_EXPR_NAME).map(text))).collect()
}

fn list<T: Reply>(
    what: &'static str,
    kind: u16,
    family: u8,
    names: &[(u16, &str)],
) -> Result<Vec<T>, NetlinkError> {
    let payload = named(family, names);
    match Connection::of(libc::NETLINK_NETFILTER)?.list(Request::raw(what, kind, NLM_F_DUMP, payload)) {
        Err(error) if error.is_missing() => Ok(Vec::new()),
        found => found,
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use nix::sched::{CloneFlags, unshare};

    use super::*;

    #[test]
    fn rules_and_elements_are_read_as_the_kernel_has_them() {
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                unshare(CloneFlags::CLONE_NEWNET).expect("root may make a network namespace");
                let rules = "table inet some { chain other { }; set few { type inet_service; elements = { 80, 81 }; }; \
                             map ways { type mark : verdict; elements = { 7 : goto other, 8 : accept, * : drop }; }; \
                             chain one { ct state new limit rate 3/second counter jump other; tcp dport @few drop; meta mark vmap @ways; }; }";
                assert!(Command::new("nft").arg(rules).status().expect("nft runs").success());
                let table = TableOf { family: libc::NFPROTO_INET as u8, name: "some".to_owned() };
                let rules = rules_of_chain(&table, "one").unwrap();
                let names: Vec<Vec<_>> = rules
                    .iter()
                    .map(|rule| rule.iter().map(|expression| expression.name.as_str()).collect())
                    .collect();
                let jump = ["ct", "bitwise", "cmp", "limit", "counter", "immediate"];
                assert_eq!(names[0], jump);
                assert_eq!(names[1].last(), Some(&"immediate"));
                assert_eq!(names[2], ["meta", "lookup"]);
                let verdict = rules[0][5].verdict(2).unwrap();
                assert_eq!(verdict.chain.as_deref(), Some("other"));
                assert_eq!(rules_of_chain(&table, "none").unwrap(), Vec::<Vec<Expression>>::new());
                let ports = elements_of(&table, "few").unwrap();
                let mut ports: Vec<_> = ports.into_iter().map(|port| port.key).collect();
                ports.sort();
                assert_eq!(ports, [[0, 80], [0, 81]]);
                let mut ways = elements_of(&table, "ways").unwrap();
                ways.sort_by_key(|way| way.key.first().copied());
                assert!(ways[0].key.is_empty(), "what stands for all others");
                assert_eq!(ways[1].verdict.clone().and_then(|way| way.chain).as_deref(), Some("other"));
                assert_eq!(ways[2].verdict, Some(Verdict { code: libc::NF_ACCEPT, chain: None }));
                assert_eq!(elements_of(&table, "none").unwrap(), []);
                let judging = "add set inet some paced { type ipv4_addr; size 9; limit rate 3/second; counter; }; \
                               add element inet some paced { 10.0.0.1 limit rate 3/second counter };";
                assert!(Command::new("nft").arg(judging).status().expect("nft runs").success());
                let both = ["limit", "counter"].map(str::to_owned);
                assert_eq!(set_of(&table, "paced").unwrap().expressions, both);
                assert_eq!(elements_of(&table, "paced").unwrap()[0].expressions, both);
                assert_eq!(set_of(&table, "few").unwrap(), Set::default());
                assert_eq!(set_of(&table, "none").unwrap(), Set::default());
            });
            reader.join().unwrap();
        });
    }
}
