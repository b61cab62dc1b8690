//! Numbers of attributes of expressions (linux/netfilter/nf_tables.h and nf_tables_compat.h) that `libc` does not have, and the questions about them that
//! are asked in several places.

use shunt_netlink::nf_tables::Expression;

pub(in super::super) const NFTA_META_DREG: u16 = 1;
pub(in super::super) const NFTA_META_KEY: u16 = 2;
pub(in super::super) const NFTA_META_SREG: u16 = 3;
pub(in super::super) const NFTA_CT_KEY: u16 = 2;
pub(in super::super) const NFTA_CT_SREG: u16 = 4;
pub(in super::super) const NFTA_PAYLOAD_DREG: u16 = 1;
pub(in super::super) const NFTA_PAYLOAD_BASE: u16 = 2;
pub(in super::super) const NFTA_PAYLOAD_OFFSET: u16 = 3;
pub(in super::super) const NFTA_PAYLOAD_LEN: u16 = 4;
pub(in super::super) const NFTA_PAYLOAD_SREG: u16 = 5;
pub(in super::super) const NFTA_EXTHDR_DREG: u16 = 1;
pub(in super::super) const NFTA_EXTHDR_TYPE: u16 = 2;
pub(in super::super) const NFTA_EXTHDR_OP: u16 = 6;
pub(in super::super) const NFTA_IMMEDIATE_DREG: u16 = 1;
pub(in super::super) const NFTA_IMMEDIATE_DATA: u16 = 2;
pub(in super::super) const NFTA_LOOKUP_SET: u16 = 1;
pub(in super::super) const NFTA_LOOKUP_SREG: u16 = 2;
pub(in super::super) const NFTA_LOOKUP_DREG: u16 = 3;
pub(in super::super) const NFTA_LOOKUP_FLAGS: u16 = 5;
pub(in super::super) const NFTA_BITWISE_SREG: u16 = 1;
pub(in super::super) const NFTA_BITWISE_DREG: u16 = 2;
pub(in super::super) const NFTA_BITWISE_MASK: u16 = 4;
pub(in super::super) const NFTA_BITWISE_XOR: u16 = 5;
pub(in super::super) const NFTA_CMP_SREG: u16 = 1;
pub(in super::super) const NFTA_CMP_OP: u16 = 2;
pub(in super::super) const NFTA_CMP_DATA: u16 = 3;
pub(in super::super) const NFTA_FIB_RESULT: u16 = 2;
pub(in super::super) const NFTA_FIB_FLAGS: u16 = 3;
pub(in super::super) const NFTA_NAT_TYPE: u16 = 1;
pub(in super::super) const NFTA_DYNSET_EXPR: u16 = 7;
pub(in super::super) const NFTA_DYNSET_EXPRESSIONS: u16 = 10;
pub(in super::super) const NFTA_OBJREF_IMM_TYPE: u16 = 1;

/// Of a match and of a target alike: its name, its revision (of a match), and what it is told.
pub(in super::super) const NFTA_MATCH_NAME: u16 = 1;
pub(in super::super) const NFTA_MATCH_REV: u16 = 2;
pub(in super::super) const NFTA_MATCH_INFO: u16 = 3;

pub(in super::super) const NFT_CMP_EQ: u32 = 0;
pub(in super::super) const NFT_CMP_NEQ: u32 = 1;

/// Whether an expression loads this of a packet's metadata (`NFT_META_…`).
pub(in super::super) fn is_meta(load: &Expression, key: i32) -> bool {
    load.name == "meta" && load.number(NFTA_META_KEY) == Some(key as u32)
}

/// Whether it loads what begins there in a header (`NFT_PAYLOAD_…_HEADER`).
pub(in super::super) fn is_payload(load: &Expression, base: i32, offset: u32) -> bool {
    load.name == "payload"
        && load.number(NFTA_PAYLOAD_BASE) == Some(base as u32)
        && load.number(NFTA_PAYLOAD_OFFSET) == Some(offset)
}

/// To what the loaded value has to be equal; none where it is compared otherwise.
pub(in super::super) fn equal(compared: &Expression) -> Option<&[u8]> {
    let is_equal = compared.name == "cmp" && compared.number(NFTA_CMP_OP) == Some(NFT_CMP_EQ);
    compared.value(NFTA_CMP_DATA).filter(|_| is_equal)
}

/// A byte of what a match or a target is told.
pub(in super::super) fn told(expression: &Expression, at: usize) -> Option<u8> {
    expression.attribute(NFTA_MATCH_INFO)?.get(at).copied()
}
