//! Rules for packets that never take the fast path: those that begin or end a connection, and all but TCP and UDP of IP.

use nix::libc;
use shunt_netlink::nf_tables::Expression;

use super::super::reading::attributes::{
    NFT_CMP_EQ, NFT_CMP_NEQ, NFTA_BITWISE_MASK, NFTA_CMP_DATA, NFTA_CMP_OP, NFTA_MATCH_NAME, is_payload, told,
};
use super::super::reading::ip::ether_type;
use super::super::reading::protocol::{TCP, TCP_FLAGS, is_tcp, protocol};

const UDP: u8 = libc::IPPROTO_UDP as u8;

/// FIN, SYN and RST.
const EDGES: u8 = 0b111;

/// Where `struct xt_tcp` (linux/netfilter/xt_tcpudp.h) has the flags that it asks for, of those that it looks at, and what it inverts.
const XT_TCP_FLAGS: usize = 10;
const XT_TCP_INVERTED: usize = 11;
const XT_TCP_INV_FLAGS: u8 = 4;

/// Whether only such packets meet the end of a rule of a table of `family`.
pub(super) fn is_only_for(rule: &[Expression], family: u8) -> bool {
    let is_other = |at| protocol(rule, at, family).is_some_and(|protocol| ![TCP, UDP].contains(&protocol));
    let is_edge = |at| is_edge(&rule[at..]) && is_tcp(&rule[..at], family);
    rule.iter().any(is_match)
        || (0..rule.len()).any(|at| is_other(at) || is_edge(at))
        || rule.windows(2).filter_map(ether_type).any(|of| !matches!(of, [0x08, 0x00] | [0x86, 0xdd]))
}

/// Whether the first three expressions ask for a flag that begins or ends a connection, and none that does not.
fn is_edge(rest: &[Expression]) -> bool {
    let [load, masked, compared, ..] = rest else { return false };
    if !is_payload(load, libc::NFT_PAYLOAD_TRANSPORT_HEADER, TCP_FLAGS) || masked.name != "bitwise" {
        return false;
    }
    let byte = |value: Option<&[u8]>| value.and_then(|value| value.first().copied()).unwrap_or_default();
    let mask = byte(masked.value(NFTA_BITWISE_MASK));
    match (compared.name.as_str(), compared.number(NFTA_CMP_OP)) {
        ("cmp", Some(NFT_CMP_EQ)) => byte(compared.value(NFTA_CMP_DATA)) & EDGES != 0,
        ("cmp", Some(NFT_CMP_NEQ)) => byte(compared.value(NFTA_CMP_DATA)) == 0 && mask & !EDGES == 0,
        _ => false,
    }
}

/// The same of iptables' matches.
fn is_match(expression: &Expression) -> bool {
    if expression.name != "match" {
        return false;
    }
    match expression.text(NFTA_MATCH_NAME).as_deref() {
        Some("icmp" | "icmp6" | "sctp" | "dccp") => true,
        Some("tcp") => {
            let (flags, inverted) = (told(expression, XT_TCP_FLAGS), told(expression, XT_TCP_INVERTED));
            flags.is_some_and(|flags| flags & EDGES != 0)
                && inverted.is_some_and(|inverted| inverted & XT_TCP_INV_FLAGS == 0)
        }
        _ => false,
    }
}
