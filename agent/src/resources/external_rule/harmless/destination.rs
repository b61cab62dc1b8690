//! For which destinations a rule is.

use nix::libc;
use shunt_netlink::nf_tables::{Element, Expression};

use super::super::reading::attributes::{
    NFTA_BITWISE_DREG, NFTA_BITWISE_MASK, NFTA_BITWISE_SREG, NFTA_BITWISE_XOR, NFTA_CMP_SREG,
    NFTA_LOOKUP_FLAGS, NFTA_LOOKUP_SET, NFTA_LOOKUP_SREG, NFTA_PAYLOAD_BASE, NFTA_PAYLOAD_DREG,
    NFTA_PAYLOAD_LEN, NFTA_PAYLOAD_OFFSET, equal,
};
use super::super::reading::ip::{Ip, ip};
use super::addresses::Addresses;

/// Where IP headers have the destination, and its bytes (RFC 791, RFC 8200).
const V4: (u32, u32) = (16, 4);
const V6: (u32, u32) = (24, 16);

/// Which destinations a rule asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Destination {
    /// These.
    Of(Addresses),
    /// Those that a set or map of this name begins with, of so many bytes each.
    In(String, usize),
}

/// The destinations to which a rule of a table of `family` is confined; none where it may be any.
pub(super) fn destination(rule: &[Expression], family: u8) -> Option<Destination> {
    (0..rule.len()).find_map(|at| {
        let (register, loaded, length) = load(&rule[at], ip(&rule[..at], family))?;
        compared(&rule[at + 1..], (register, loaded, length)).or_else(|| {
            // Nothing may come between that asks for something, or has the register for something else.
            let next = rule[at + 1..].iter().find(|next| !is_load_behind(next, (register, length)))?;
            let is_lookup = next.name == "lookup"
                && next.number(NFTA_LOOKUP_SREG) == Some(register)
                && next.number(NFTA_LOOKUP_FLAGS).unwrap_or_default() == 0;
            let set = next.text(NFTA_LOOKUP_SET).filter(|_| is_lookup && loaded == length)?;
            Some(Destination::In(set, length))
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

/// Whether an expression loads the destination, or where it begins: the register, how many bytes, and how many it has.
fn load(expression: &Expression, ip: Ip) -> Option<(u32, usize, usize)> {
    if expression.name != "payload"
        || expression.number(NFTA_PAYLOAD_BASE)? != libc::NFT_PAYLOAD_NETWORK_HEADER as u32
    {
        return None;
    }
    let (offset, length) = match ip {
        Ip::V4 => V4,
        Ip::V6 => V6,
        Ip::Any => return None,
    };
    let loaded = expression.number(NFTA_PAYLOAD_LEN)?;
    let is_destination = expression.number(NFTA_PAYLOAD_OFFSET)? == offset && loaded <= length;
    is_destination.then_some((expression.number(NFTA_PAYLOAD_DREG)?, loaded as usize, length as usize))
}

/// The addresses with which the destination is compared at once: with all its bytes, with the first, or behind a mask.
fn compared(rest: &[Expression], (register, loaded, length): (u32, usize, usize)) -> Option<Destination> {
    let first = rest.first()?;
    let (mask, compared) = match first.name.as_str() {
        "bitwise" => (Some(mask(first, register)?), rest.get(1)?),
        _ => (None, first),
    };
    if compared.number(NFTA_CMP_SREG)? != register {
        return None;
    }
    let value = equal(compared).filter(|value| value.len() == loaded)?;
    let last: Vec<u8> = match mask {
        Some(mask) => value.iter().zip(mask).map(|(value, mask)| value | !mask).collect(),
        None => value.to_vec(),
    };
    let mut addresses = Addresses::default();
    addresses.insert(value, &last, length).then_some(Destination::Of(addresses))
}

/// The mask with which a register is masked where it is; of other masks than a prefix's there are more addresses between than it has.
fn mask(expression: &Expression, register: u32) -> Option<&[u8]> {
    let is_here =
        [NFTA_BITWISE_SREG, NFTA_BITWISE_DREG].iter().all(|kind| expression.number(*kind) == Some(register));
    let flips = expression.value(NFTA_BITWISE_XOR)?.iter().any(|byte| *byte != 0);
    expression.value(NFTA_BITWISE_MASK).filter(|_| is_here && !flips)
}

/// The destinations with which elements begin, of `length` bytes each; none where one is for any.
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
