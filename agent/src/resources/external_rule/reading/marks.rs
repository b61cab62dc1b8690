//! Whether a rule asks for a packet's mark. A packet has none until a rule marks it.

use nix::libc;
use shunt_netlink::nf_tables::Expression;

use super::attributes::{
    NFT_CMP_EQ, NFT_CMP_NEQ, NFTA_BITWISE_MASK, NFTA_BITWISE_XOR, NFTA_CMP_DATA, NFTA_CMP_OP,
    NFTA_MATCH_INFO, NFTA_MATCH_NAME, is_meta,
};
use super::states::word;

/// Where `struct xt_mark_mtinfo1` (linux/netfilter/xt_mark.h) has the mark, its mask, and whether it is inverted.
const XT_MARK: usize = 0;
const XT_INVERTED: usize = 8;

/// What is asked of the mark, and with how many expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct AskedMark {
    /// Whether the rule goes on for a packet without a mark.
    pub(in super::super) is_for_unmarked: bool,
    /// How many expressions ask.
    pub(in super::super) expressions: usize,
}

/// What the expressions at the beginning of `rest` ask of the mark; none where they do not, or what is not known here.
pub(in super::super) fn asked(rest: &[Expression]) -> Option<AskedMark> {
    let first = rest.first()?;
    if first.name == "match" {
        return of_match(first);
    }
    let second = rest.get(1).filter(|_| is_meta(first, libc::NFT_META_MARK))?;
    let (unmarked, compared, expressions) = match second.name.as_str() {
        "bitwise" => {
            second.value(NFTA_BITWISE_MASK)?;
            (word(second.value(NFTA_BITWISE_XOR)?)?, rest.get(2)?, 3)
        }
        _ => (0, second, 2),
    };
    if compared.name != "cmp" {
        return None;
    }
    let is_equal = word(compared.value(NFTA_CMP_DATA)?)? == unmarked;
    let is_for_unmarked = match compared.number(NFTA_CMP_OP)? {
        NFT_CMP_EQ => is_equal,
        NFT_CMP_NEQ => !is_equal,
        _ => return None,
    };
    Some(AskedMark { is_for_unmarked, expressions })
}

/// The match `mark` of iptables.
fn of_match(expression: &Expression) -> Option<AskedMark> {
    let info = expression.attribute(NFTA_MATCH_INFO)?;
    if expression.text(NFTA_MATCH_NAME)? != "mark" {
        return None;
    }
    let is_inverted = *info.get(XT_INVERTED)? != 0;
    Some(AskedMark { is_for_unmarked: (word(info.get(XT_MARK..)?)? == 0) != is_inverted, expressions: 1 })
}
