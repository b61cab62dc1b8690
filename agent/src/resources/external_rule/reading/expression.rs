//! What one expression makes a rule's answer depend on.

use nix::libc;
use shunt_netlink::nf_tables::Expression;

use super::attributes::{
    NFTA_CT_KEY, NFTA_CT_SREG, NFTA_DYNSET_EXPR, NFTA_DYNSET_EXPRESSIONS, NFTA_EXTHDR_DREG, NFTA_EXTHDR_OP,
    NFTA_EXTHDR_TYPE, NFTA_IMMEDIATE_DREG, NFTA_LOOKUP_DREG, NFTA_META_KEY, NFTA_META_SREG,
    NFTA_OBJREF_IMM_TYPE, NFTA_PAYLOAD_BASE, NFTA_PAYLOAD_LEN, NFTA_PAYLOAD_OFFSET, NFTA_PAYLOAD_SREG,
};
use super::effect::{Effect, OPTIONS_OF_SYN};
use super::ip::ip;
use super::protocol::{TCP_FLAGS, is_tcp};
use super::xtables;

const NFT_CT_ZONE: i32 = 17;
const NFT_EXTHDR_OP_TCPOPT: u32 = 1;

/// Objects that decide nothing: `NFT_OBJECT_COUNTER`, `NFT_OBJECT_CT_TIMEOUT`.
const SILENT_OBJECTS: [u32; 2] = [1, 7];

/// `NFT_OBJECT_SECMARK`: a mark, as of iptables' target `SECMARK`.
const SECMARK: u32 = 8;

/// Bytes of Ethernet's header (`ETH_HLEN`).
const ETHERNET: u32 = 14;

/// Expressions whose answer is the same for all packets of a flow, but those that begin and end it.
const STEADY: [&str; 21] = [
    "bitwise",
    "byteorder",
    "cmp",
    "counter",
    "ct",
    "dynset",
    "fib",
    "hash",
    "immediate",
    "last",
    "log",
    "lookup",
    "match",
    "meta",
    "objref",
    "osf",
    "payload",
    "range",
    "reject",
    "rt",
    "socket",
];

/// What `expression` does in a rule of a table of `family`, behind what the rule has `asked`.
pub(in super::super) fn effect(expression: &Expression, asked: &[Expression], family: u8) -> Effect {
    match expression.name.as_str() {
        "meta" => meta(expression),
        "ct" => ct(expression),
        "exthdr" => option(expression),
        "payload" => payload(expression, asked, family),
        "dynset" => dynset(expression),
        "objref" => object(expression),
        "match" => xtables::of_match(expression),
        "target" => xtables::of_target(expression),
        "immediate" if expression.number(NFTA_IMMEDIATE_DREG) == Some(libc::NFT_REG_VERDICT as u32) => {
            Effect::acting()
        }
        "lookup" if expression.number(NFTA_LOOKUP_DREG) == Some(libc::NFT_REG_VERDICT as u32) => {
            Effect::acting()
        }
        "reject" | "notrack" | "nat" | "masq" | "redir" => Effect::acting(),
        // Each packet asks somebody.
        "limit" | "quota" | "connlimit" | "numgen" => Effect::varying(&*expression.name, false),
        name if STEADY.contains(&name) => Effect::default(),
        name => Effect::varying(name, true),
    }
}

fn meta(expression: &Expression) -> Effect {
    let key = expression.number(NFTA_META_KEY).map(|key| key as i32);
    match key {
        Some(libc::NFT_META_LEN) => Effect::varying("meta length", false),
        Some(libc::NFT_META_CPU) => Effect::varying("meta cpu", false),
        Some(libc::NFT_META_PRANDOM) => Effect::varying("meta random", false),
        // Another rule may go by what it marks.
        _ => Effect { varies: None, acts: expression.attribute(NFTA_META_SREG).is_some() },
    }
}

fn ct(expression: &Expression) -> Effect {
    let key = expression.number(NFTA_CT_KEY).map(|key| key as i32);
    let is_set = expression.attribute(NFTA_CT_SREG).is_some();
    match key {
        // Connection tracking is told of connections in the zone 0 only.
        Some(NFT_CT_ZONE) if is_set => Effect::varying("a zone", true),
        Some(libc::NFT_CT_PKTS | libc::NFT_CT_BYTES | libc::NFT_CT_AVGPKT) => {
            Effect::varying("ct bytes or packets", false)
        }
        Some(libc::NFT_CT_EXPIRATION) => Effect::varying("ct expiration", false),
        _ => Effect { varies: None, acts: is_set },
    }
}

/// Of the headers only what says whose packet it is. TCP's flags count as that: those that matter go by the kernel.
fn payload(expression: &Expression, asked: &[Expression], family: u8) -> Effect {
    if expression.attribute(NFTA_PAYLOAD_SREG).is_some() {
        return Effect::varying("changed headers", true);
    }
    let number = |kind| expression.number(kind).unwrap_or(u32::MAX);
    let (base, offset, length) =
        (number(NFTA_PAYLOAD_BASE), number(NFTA_PAYLOAD_OFFSET), number(NFTA_PAYLOAD_LEN));
    let is_steady = match base as i32 {
        libc::NFT_PAYLOAD_LL_HEADER => offset.saturating_add(length) <= ETHERNET,
        libc::NFT_PAYLOAD_NETWORK_HEADER => ip(asked, family).is_steady(offset, length),
        // Ports, ICMP's type and code, and TCP's flags.
        libc::NFT_PAYLOAD_TRANSPORT_HEADER => {
            offset.saturating_add(length) <= 4 || (offset, length) == (TCP_FLAGS, 1) && is_tcp(asked, family)
        }
        _ => false,
    };
    if is_steady { Effect::default() } else { Effect::varying("a payload", false) }
}

/// What adds an address to a set may decide: others ask for it there.
/// What counts by it varies.
fn dynset(expression: &Expression) -> Effect {
    let counts = [NFTA_DYNSET_EXPR, NFTA_DYNSET_EXPRESSIONS];
    if counts.iter().any(|kind| expression.attribute(*kind).is_some()) {
        Effect::varying("a set that counts", true)
    } else {
        Effect::acting()
    }
}

/// Options of TCP that only SYN has are steady; what has extension headers, options of IP or chunks is never fast.
fn option(expression: &Expression) -> Effect {
    if expression.number(NFTA_EXTHDR_OP) != Some(NFT_EXTHDR_OP_TCPOPT) {
        return Effect::default();
    }
    let kind = expression.attribute(NFTA_EXTHDR_TYPE).and_then(|kind| kind.first().copied());
    let changes = expression.attribute(NFTA_EXTHDR_DREG).is_none();
    let is_of_syn = kind.is_some_and(|kind| OPTIONS_OF_SYN.contains(&kind));
    Effect { varies: (!is_of_syn).then(|| "an option of TCP".to_owned()), acts: changes }
}

fn object(expression: &Expression) -> Effect {
    match expression.number(NFTA_OBJREF_IMM_TYPE) {
        Some(kind) if SILENT_OBJECTS.contains(&kind) => Effect::default(),
        Some(SECMARK) => Effect::acting(),
        // A limit or a quota decides; a helper reads what is said.
        _ => Effect::varying("an object", true),
    }
}

#[cfg(test)]
mod tests {
    use shunt_netlink::attribute::attribute;

    use super::super::attributes::NFTA_MATCH_NAME;
    use super::*;

    #[test]
    fn what_marks_for_a_security_module_acts_by_nf_tables_as_by_iptables() {
        let expression = |name: &str, data| Expression { name: name.to_owned(), data };
        let object = expression("objref", attribute(NFTA_OBJREF_IMM_TYPE, &SECMARK.to_be_bytes()));
        let target = expression("target", attribute(NFTA_MATCH_NAME, b"SECMARK\0"));
        for expression in [object, target] {
            assert_eq!(effect(&expression, &[], 0), Effect::acting(), "{expression:?}");
        }
        let counter = expression("objref", attribute(NFTA_OBJREF_IMM_TYPE, &1u32.to_be_bytes()));
        assert_eq!(effect(&counter, &[], 0), Effect::default());
    }
}
