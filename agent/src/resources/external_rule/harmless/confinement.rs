//! For which destinations, or sources, a rule is.

use nix::libc;
use shunt_netlink::nf_tables::{Element, Expression};

use super::super::reading::attributes::{
    NFT_CMP_EQ, NFT_CMP_NEQ, NFTA_BITWISE_DREG, NFTA_BITWISE_MASK, NFTA_BITWISE_SREG, NFTA_BITWISE_XOR,
    NFTA_CMP_DATA, NFTA_CMP_OP, NFTA_CMP_SREG, NFTA_LOOKUP_FLAGS, NFTA_LOOKUP_SET, NFTA_LOOKUP_SREG,
    NFTA_PAYLOAD_BASE, NFTA_PAYLOAD_DREG, NFTA_PAYLOAD_LEN, NFTA_PAYLOAD_OFFSET,
};
use super::super::reading::ip::{Ip, ip};
use super::addresses::Addresses;

/// An end of what a packet passes between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Source,
    Destination,
}

impl End {
    /// Where IP headers have its address, and its bytes (RFC 791, RFC 8200).
    fn place(self, ip: Ip) -> Option<(u32, u32)> {
        match (ip, self) {
            (Ip::V4, Self::Source) => Some((12, 4)),
            (Ip::V4, Self::Destination) => Some((16, 4)),
            (Ip::V6, Self::Source) => Some((8, 16)),
            (Ip::V6, Self::Destination) => Some((24, 16)),
            (Ip::Any, _) => None,
        }
    }
}

/// Which addresses a rule asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// These.
    Of(Addresses),
    /// Those that a set or map of this name begins with, of so many bytes each.
    In(String, usize),
}

/// The addresses of an end to which a rule of a table of `family` is confined; none where it may be any.
pub(super) fn asked(rule: &[Expression], family: u8, end: End) -> Option<Asked> {
    (0..rule.len()).find_map(|at| {
        let (register, loaded, length) = load(&rule[at], end.place(ip(&rule[..at], family))?)?;
        compared(&rule[at + 1..], (register, loaded, length)).or_else(|| {
            // Nothing may come between that asks for something, or has the register for something else.
            let next = rule[at + 1..].iter().find(|next| !is_load_behind(next, (register, length)))?;
            let is_lookup = next.name == "lookup"
                && next.number(NFTA_LOOKUP_SREG) == Some(register)
                && next.number(NFTA_LOOKUP_FLAGS).unwrap_or_default() == 0;
            let set = next.text(NFTA_LOOKUP_SET).filter(|_| is_lookup && loaded == length)?;
            Some(Asked::In(set, length))
        })
    })
}

/// Whether an expression only loads another part of a key, behind `length` bytes from `register` on.
fn is_load_behind(expression: &Expression, (register, length): (u32, usize)) -> bool {
    let loads = matches!(expression.name.as_str(), "payload" | "meta" | "ct");
    let into = expression.number(NFTA_PAYLOAD_DREG).filter(|_| loads);
    into.is_some_and(|into| first_bytes(into) >= first_bytes(register) + length)
}

/// Where a register begins: the first of four bytes each (`NFT_REG32_00`) are those of sixteen (`NFT_REG_1`) as well.
const fn first_bytes(register: u32) -> usize {
    let (of_16, of_4) = (libc::NFT_REG_1 as u32, libc::NFT_REG32_00 as u32);
    if register >= of_4 {
        4 * (register - of_4) as usize
    } else {
        16 * register.saturating_sub(of_16) as usize
    }
}

/// Whether an expression loads what is there, or where it begins: the register, how many bytes, and how many it has.
fn load(expression: &Expression, (offset, length): (u32, u32)) -> Option<(u32, usize, usize)> {
    if expression.name != "payload"
        || expression.number(NFTA_PAYLOAD_BASE)? != libc::NFT_PAYLOAD_NETWORK_HEADER as u32
    {
        return None;
    }
    let loaded = expression.number(NFTA_PAYLOAD_LEN)?;
    let is_there = expression.number(NFTA_PAYLOAD_OFFSET)? == offset && loaded <= length;
    is_there.then_some((expression.number(NFTA_PAYLOAD_DREG)?, loaded as usize, length as usize))
}

/// The addresses with which what was loaded is compared at once, or all others: with all its bytes, with the first, or behind a prefix's mask.
fn compared(rest: &[Expression], (register, loaded, length): (u32, usize, usize)) -> Option<Asked> {
    let first = rest.first()?;
    let (mask, compared) = match first.name.as_str() {
        "bitwise" => (Some(mask(first, register)?), rest.get(1)?),
        _ => (None, first),
    };
    if compared.name != "cmp" || compared.number(NFTA_CMP_SREG)? != register {
        return None;
    }
    let value = compared.value(NFTA_CMP_DATA).filter(|value| value.len() == loaded)?;
    let last: Vec<u8> = match mask {
        Some(mask) => value.iter().zip(mask).map(|(value, mask)| value | !mask).collect(),
        None => value.to_vec(),
    };
    let mut addresses = Addresses::default();
    if !addresses.insert(value, &last, length) {
        return None;
    }
    match compared.number(NFTA_CMP_OP)? {
        NFT_CMP_EQ => Some(Asked::Of(addresses)),
        NFT_CMP_NEQ => Some(Asked::Of(Addresses::every_of(length).without(&addresses))),
        _ => None,
    }
}

/// The mask of a prefix with which a register is masked where it is.
fn mask(expression: &Expression, register: u32) -> Option<&[u8]> {
    let is_here =
        [NFTA_BITWISE_SREG, NFTA_BITWISE_DREG].iter().all(|kind| expression.number(*kind) == Some(register));
    let flips = expression.value(NFTA_BITWISE_XOR)?.iter().any(|byte| *byte != 0);
    let mask = expression.value(NFTA_BITWISE_MASK).filter(|_| is_here && !flips)?;
    let behind = mask.iter().skip_while(|byte| **byte == u8::MAX);
    let is_prefix = behind
        .enumerate()
        .all(|(at, byte)| at == 0 && byte.leading_ones() == byte.count_ones() || *byte == 0);
    is_prefix.then_some(mask)
}

/// The addresses with which elements begin, of `length` bytes each; none where one is for any.
pub(super) fn of_elements(elements: &[Element], length: usize) -> Option<Addresses> {
    let mut addresses = Addresses::default();
    let first = |key: &[u8]| key.get(..length).map(<[u8]>::to_vec);
    let mut ends = Vec::new();
    for element in elements.iter().filter(|element| element.ends_interval) {
        ends.push(first(&element.key)?);
    }
    ends.sort_unstable();
    for element in elements.iter().filter(|element| !element.ends_interval) {
        let begin = first(&element.key)?;
        let is_address = match (&element.last, ends.iter().find(|end| **end > begin)) {
            (Some(last), _) => addresses.insert(&begin, &first(last)?, length),
            (None, Some(end)) => addresses.insert_before(&begin, end, length),
            // An interval without an end goes up to the last address; all addresses are one that begins with the first.
            (None, None) if !ends.is_empty() || begin.iter().all(|byte| *byte == 0) => {
                addresses.insert(&begin, &vec![u8::MAX; length], length)
            }
            (None, None) => addresses.insert(&begin, &begin, length),
        };
        if !is_address {
            return None;
        }
    }
    Some(addresses)
}
