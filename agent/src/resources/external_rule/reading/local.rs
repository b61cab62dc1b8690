//! Whether a rule is for what is sent to an address of the node.

use shunt_netlink::nf_tables::Expression;

use super::attributes::{
    NFTA_FIB_FLAGS, NFTA_FIB_RESULT, NFTA_MATCH_INFO, NFTA_MATCH_NAME, NFTA_MATCH_REV, equal,
};
use super::states::word;

/// `NFT_FIB_RESULT_ADDRTYPE`, and `NFTA_FIB_F_DADDR` with the flags that ask for something else (`_SADDR`, `_PRESENT`).
const RESULT_IS_TYPE: u32 = 3;
const OF_DESTINATION: u32 = 1 << 1;
const OF_OTHER: u32 = 1 | 1 << 5;

/// `RTN_LOCAL`.
const LOCAL: u32 = 2;

/// `struct xt_addrtype_info_v1` (linux/netfilter/xt_addrtype.h): types of sources and of destinations, and flags.
const XT_LOCAL: [u8; 2] = (1u16 << 2).to_ne_bytes();
const XT_DESTINATION: std::ops::Range<usize> = 2..4;
const XT_FLAGS: usize = 4;
const XT_INVERTS_DESTINATION: u32 = 1 << 1;

/// Whether only such packets meet the end of what is asked.
pub(in super::super) fn is_for_node(asked: &[Expression]) -> bool {
    asked.iter().any(is_match) || asked.windows(2).any(|pair| is_fib(&pair[0], &pair[1]))
}

fn is_fib(load: &Expression, compared: &Expression) -> bool {
    load.name == "fib"
        && load.number(NFTA_FIB_RESULT) == Some(RESULT_IS_TYPE)
        && load
            .number(NFTA_FIB_FLAGS)
            .is_some_and(|flags| flags & (OF_DESTINATION | OF_OTHER) == OF_DESTINATION)
        && equal(compared).and_then(word) == Some(LOCAL)
}

fn is_match(expression: &Expression) -> bool {
    let Some(info) = expression.attribute(NFTA_MATCH_INFO).filter(|_| expression.name == "match") else {
        return false;
    };
    let is_inverted = |flags: u32| flags & XT_INVERTS_DESTINATION != 0;
    expression.text(NFTA_MATCH_NAME).as_deref() == Some("addrtype")
        && expression.number(NFTA_MATCH_REV) == Some(1)
        && info.get(XT_DESTINATION) == Some(&XT_LOCAL)
        && info.get(XT_FLAGS..).and_then(word).is_some_and(|flags| !is_inverted(flags))
}
