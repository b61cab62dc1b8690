//! What a table of nf_tables holds, and whether anybody has changed it.

mod chain;

use std::collections::BTreeMap;

use netlink_packet_core::NLM_F_DUMP;
use nix::errno::Errno;
use nix::libc;

pub use self::chain::{
    Element, Expression, Set, TableOf, Verdict, elements_of, rules_of_chain, set_of, sets_written_in,
};
use crate::attribute::{attribute, find, text};
use crate::connection::Connection;
use crate::error::NetlinkError;
use crate::nfnetlink;
use crate::request::{Reply, Request};

const GET_RULE: u16 = (libc::NFNL_SUBSYS_NFTABLES as u16) << 8 | libc::NFT_MSG_GETRULE as u16;
const GET_GENERATION: u16 = (libc::NFNL_SUBSYS_NFTABLES as u16) << 8 | libc::NFT_MSG_GETGEN as u16;

// linux/netfilter/nf_tables.h; `libc` has none of them.
const NFTA_GEN_ID: u16 = 1;
const NFTA_RULE_TABLE: u16 = 1;
const NFTA_RULE_CHAIN: u16 = 2;
const NFTA_RULE_EXPRESSIONS: u16 = 4;
const NFTA_RULE_USERDATA: u16 = 7;

/// A message that names what it is about, by attributes.
fn named(family: u8, names: &[(u16, &str)]) -> Vec<u8> {
    let mut payload = nfnetlink::header(family);
    for (kind, name) in names {
        payload.extend(attribute(*kind, &[name.as_bytes(), &[0]].concat()));
    }
    payload
}

/// A value as a number, which nf_tables has in network order.
fn number(value: &[u8]) -> Option<u32> {
    value.try_into().ok().map(u32::from_be_bytes)
}

/// A rule of a table, as its text would tell it: handles and positions are left out, which are new with each transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRule {
    /// Its chain.
    pub chain: String,
    /// `NFTA_RULE_EXPRESSIONS`, in the kernel's own encoding.
    pub expressions: Vec<u8>,
    /// `NFTA_RULE_USERDATA`.
    pub comment: Vec<u8>,
}

impl Reply for TableRule {
    fn read(payload: &[u8]) -> Option<Self> {
        let attributes = payload.get(nfnetlink::HEADER..)?;
        let bytes = |kind| find(attributes, kind).unwrap_or_default().to_vec();
        Some(Self {
            chain: text(find(attributes, NFTA_RULE_CHAIN)?),
            expressions: bytes(NFTA_RULE_EXPRESSIONS),
            comment: bytes(NFTA_RULE_USERDATA),
        })
    }
}

/// The rules of a table of the family `inet`; none without the table.
///
/// # Errors
/// Netlink's.
pub fn rules_of(table: &str) -> Result<Vec<TableRule>, NetlinkError> {
    let payload = named(libc::NFPROTO_INET as u8, &[(NFTA_RULE_TABLE, table)]);
    let request = Request::raw("list the rules of a table of nf_tables", GET_RULE, NLM_F_DUMP, payload);
    match Connection::of(libc::NETLINK_NETFILTER)?.list(request) {
        Err(error) if error.errno() == Some(Errno::EINVAL) || error.is_missing() => Ok(Vec::new()),
        found => found,
    }
}

/// How many rules a table has, and nothing of what they say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleCount {
    /// `NFPROTO_INET`, `NFPROTO_BRIDGE`…
    pub family: u8,
    /// The table's name.
    pub table: String,
    /// How many.
    pub rules: usize,
}

/// A rule, of which only its table is read.
struct RuleOfTable(u8, String);

impl Reply for RuleOfTable {
    fn read(payload: &[u8]) -> Option<Self> {
        Some(Self(*payload.first()?, text(find(payload.get(nfnetlink::HEADER..)?, NFTA_RULE_TABLE)?)))
    }
}

/// The tables of every family that have rules; none on a kernel without nf_tables.
///
/// # Errors
/// Netlink's.
pub fn rule_counts() -> Result<Vec<RuleCount>, NetlinkError> {
    let payload = nfnetlink::header(libc::NFPROTO_UNSPEC as u8);
    let request = Request::raw("count the rules of nf_tables", GET_RULE, NLM_F_DUMP, payload);
    let rules = match Connection::of(libc::NETLINK_NETFILTER)?.list(request) {
        Err(error) if error.errno() == Some(Errno::EINVAL) => Vec::new(),
        found => found?,
    };
    let mut counts = BTreeMap::new();
    for RuleOfTable(family, table) in rules {
        *counts.entry((family, table)).or_default() += 1;
    }
    Ok(counts.into_iter().map(|((family, table), rules)| RuleCount { family, table, rules }).collect())
}

/// The generation of a namespace's rules.
struct Generation(u32);

impl Reply for Generation {
    fn read(payload: &[u8]) -> Option<Self> {
        find(payload.get(nfnetlink::HEADER..)?, NFTA_GEN_ID).and_then(number).map(Self)
    }
}

/// The generation of this namespace's rules: another number after each transaction of anybody's. None on a kernel without
/// nf_tables.
pub fn generation() -> Option<u32> {
    let payload = nfnetlink::header(libc::NFPROTO_UNSPEC as u8);
    let request = Request::raw("read the generation of nf_tables", GET_GENERATION, 0, payload);
    let asked = Connection::of(libc::NETLINK_NETFILTER).and_then(|mut connection| connection.get(request));
    asked.ok().flatten().map(|Generation(id)| id)
}
