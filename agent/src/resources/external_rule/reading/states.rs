//! Which of connection tracking's states a rule is for.

use nix::libc;
use shunt_netlink::nf_tables::Expression;

use super::attributes::{
    NFT_CMP_NEQ, NFTA_BITWISE_MASK, NFTA_CMP_DATA, NFTA_CMP_OP, NFTA_CT_KEY, NFTA_MATCH_INFO,
    NFTA_MATCH_NAME, NFTA_MATCH_REV, equal,
};

/// `NF_CT_STATE_BIT`, which xtables has as well (linux/netfilter/nf_conntrack_common.h).
pub(in super::super) const INVALID: u32 = 1;
pub(in super::super) const ESTABLISHED: u32 = 1 << 1;
pub(in super::super) const NEW: u32 = 1 << 3;

/// `struct xt_conntrack_mtinfo3` (linux/netfilter/xt_conntrack.h): bits of what is asked, those of them that are inverted, and states.
const MATCH_FLAGS: usize = 146;
const INVERT_FLAGS: usize = 148;
const STATE_MASK: usize = 150;

/// `XT_CONNTRACK_STATE`.
const ASKS_FOR_STATE: u16 = 1;

/// `XT_CONNTRACK_EXPIRES`, by which packets of a flow differ.
const ASKS_FOR_EXPIRY: u16 = 1 << 7;

/// `XT_CONNTRACK_STATE_ALIAS`: `-m state`, which asks for nothing else.
const WRITTEN_AS_STATE: u16 = 1 << 13;

/// What a rule asks of the state, and with how many expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Asked {
    /// The states for which it goes on.
    pub(in super::super) states: u32,
    /// Whether nothing else is asked by the same expressions.
    pub(in super::super) is_all: bool,
    /// How many these are.
    pub(in super::super) expressions: usize,
}

/// Whether an expression loads the state.
pub(in super::super) fn is_load(expression: &Expression) -> bool {
    expression.name == "ct" && expression.number(NFTA_CT_KEY) == Some(libc::NFT_CT_STATE as u32)
}

/// What the expressions at the beginning of `rest` ask of the state; none where they do not, or ask for those that are not some.
pub(in super::super) fn asked(rest: &[Expression]) -> Option<Asked> {
    let first = rest.first()?;
    if first.name == "match" {
        return of_match(first);
    }
    if !is_load(first) {
        return None;
    }
    let second = rest.get(1)?;
    if let Some(value) = equal(second) {
        return Some(Asked { states: word(value)?, is_all: true, expressions: 2 });
    }
    let third = rest.get(2)?;
    let is_any = third.name == "cmp"
        && third.number(NFTA_CMP_OP) == Some(NFT_CMP_NEQ)
        && word(third.value(NFTA_CMP_DATA)?)? == 0;
    if second.name != "bitwise" || !is_any {
        return None;
    }
    Some(Asked { states: word(second.value(NFTA_BITWISE_MASK)?)?, is_all: true, expressions: 3 })
}

/// The match `conntrack` or `state` of iptables.
fn of_match(expression: &Expression) -> Option<Asked> {
    let info = expression.attribute(NFTA_MATCH_INFO)?;
    match expression.text(NFTA_MATCH_NAME)?.as_str() {
        "state" => Some(Asked { states: word(info.get(..4)?)?, is_all: true, expressions: 1 }),
        "conntrack" => {
            let (flags, inverted) = (half(info, MATCH_FLAGS)? & !WRITTEN_AS_STATE, half(info, INVERT_FLAGS)?);
            let asks = flags & ASKS_FOR_STATE != 0 && inverted & ASKS_FOR_STATE == 0;
            if !asks || asks_for_expiry(expression) {
                return None;
            }
            // Until the second revision a byte each.
            let states = match expression.number(NFTA_MATCH_REV)? {
                1 => u32::from(*info.get(STATE_MASK)?),
                _ => half(info, STATE_MASK)?.into(),
            };
            Some(Asked { states, is_all: flags == ASKS_FOR_STATE, expressions: 1 })
        }
        _ => None,
    }
}

/// Whether the match `conntrack` asks how long an entry lives on, by which the packets of a flow differ. One that cannot be read may.
pub(in super::super) fn asks_for_expiry(expression: &Expression) -> bool {
    let info = expression.attribute(NFTA_MATCH_INFO);
    info.and_then(|info| half(info, MATCH_FLAGS)).is_none_or(|flags| flags & ASKS_FOR_EXPIRY != 0)
}

fn half(info: &[u8], at: usize) -> Option<u16> {
    info.get(at..at + 2)?.try_into().ok().map(u16::from_ne_bytes)
}

/// States, which nf_tables has in the machine's order.
pub(in super::super) fn word(value: &[u8]) -> Option<u32> {
    value.get(..4)?.try_into().ok().map(u32::from_ne_bytes)
}
