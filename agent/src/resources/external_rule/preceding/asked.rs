//! For which host ports a rule may be: only what is known to be for another protocol, port or address is not.

use std::net::IpAddr;

use nix::libc;
use shunt_netlink::nf_tables::{Element, Expression};

use super::super::reading::attributes::{
    NFT_CMP_EQ, NFT_CMP_NEQ, NFTA_CMP_DATA, NFTA_CMP_OP, NFTA_LOOKUP_FLAGS, NFTA_MATCH_INFO, NFTA_MATCH_NAME,
    NFTA_PAYLOAD_LEN, equal, is_payload, told,
};
use super::super::reading::protocol::protocol;

const NFT_CMP_LT: u32 = libc::NFT_CMP_LT as u32;
const NFT_CMP_LTE: u32 = libc::NFT_CMP_LTE as u32;
const NFT_CMP_GT: u32 = libc::NFT_CMP_GT as u32;
const NFT_CMP_GTE: u32 = libc::NFT_CMP_GTE as u32;

/// `NFTA_RANGE_OP`, `NFTA_RANGE_FROM_DATA` and `NFTA_RANGE_TO_DATA` (linux/netfilter/nf_tables.h).
const NFTA_RANGE_OP: u16 = 2;
const NFTA_RANGE_FROM: u16 = 3;
const NFTA_RANGE_TO: u16 = 4;

/// Where TCP, UDP and SCTP have the port that a packet goes to, and its length.
const PORT: u32 = 2;
const PORT_LENGTH: u32 = 2;

/// Where IPv4 and IPv6 have the address that a packet goes to, and its length.
const DESTINATIONS: [(u32, usize); 2] = [(16, 4), (24, 16)];

/// Where `struct xt_tcp` and `xt_udp` (linux/netfilter/xt_tcpudp.h) have the range of destination ports, and what is inverted, of which this bit is
/// that range.
const XT_PORTS: usize = 4;
const XT_INVERTED: [(&str, usize); 2] = [("tcp", 11), ("udp", 8)];
const XT_INVERTS_PORTS: u8 = 2;

/// A host port that is asked for.
pub(super) struct HostPort {
    pub(super) protocol: u8,
    pub(super) port: u16,
    /// The addresses of the node at which it is.
    pub(super) at: Vec<IpAddr>,
    /// For a person.
    pub(super) said: String,
}

/// Whether packets to a host port may meet the end of a rule of a table of `family`, but for the sets that it looks up.
pub(super) fn may_be_for(rule: &[Expression], family: u8, asked: &HostPort) -> bool {
    (0..rule.len()).all(|at| {
        let is_protocol = protocol(rule, at, family).is_none_or(|protocol| protocol == asked.protocol);
        is_protocol
            && may_go_to_port(&rule[at..], asked.port)
            && may_go_to_address(&rule[at..], &asked.at)
            && may_match(&rule[at], asked)
    })
}

/// Whether an expression loads the port that a packet goes to, and nothing else.
pub(super) fn is_port(load: &Expression) -> bool {
    is_payload(load, libc::NFT_PAYLOAD_TRANSPORT_HEADER, PORT)
        && load.number(NFTA_PAYLOAD_LEN) == Some(PORT_LENGTH)
}

/// Whether a set of ports, which `lookup` asks for, may let a port through.
pub(super) fn may_have(elements: &[Element], lookup: &Expression, port: u16) -> bool {
    let is_inverted = lookup.number(NFTA_LOOKUP_FLAGS).unwrap_or_default() != 0;
    let is_plain = elements.iter().all(is_single);
    !is_plain || elements.iter().any(|element| may_be(element, port)) != is_inverted
}

/// Whether an element of a set or map of ports may stand for a port: of intervals that is not known.
pub(super) fn may_be(element: &Element, port: u16) -> bool {
    !is_single(element) || element.key.is_empty() || element.key == port.to_be_bytes()
}

fn is_single(element: &Element) -> bool {
    !element.ends_interval && element.last.is_none()
}

/// What is compared with the port, if that is loaded first. An interval is two comparisons.
fn may_go_to_port(rest: &[Expression], port: u16) -> bool {
    let Some((load, compared)) = rest.split_first() else { return true };
    if !is_port(load) {
        return true;
    }
    compared.iter().map_while(|it| holds_for(it, port)).all(|holds| holds)
}

/// Whether a comparison holds for a port; none where it is no comparison with one.
fn holds_for(compared: &Expression, port: u16) -> Option<bool> {
    let number = |kind| compared.value(kind)?.try_into().ok().map(u16::from_be_bytes);
    match compared.name.as_str() {
        "cmp" => {
            let with = number(NFTA_CMP_DATA)?;
            Some(match compared.number(NFTA_CMP_OP)? {
                NFT_CMP_EQ => port == with,
                NFT_CMP_NEQ => port != with,
                NFT_CMP_LT => port < with,
                NFT_CMP_LTE => port <= with,
                NFT_CMP_GT => port > with,
                NFT_CMP_GTE => port >= with,
                _ => true,
            })
        }
        "range" => {
            let is_within = (number(NFTA_RANGE_FROM)?..=number(NFTA_RANGE_TO)?).contains(&port);
            let is_inverted = compared.number(NFTA_RANGE_OP) == Some(libc::NFT_RANGE_NEQ as u32);
            Some(is_within != is_inverted)
        }
        _ => None,
    }
}

/// Whether what is compared with the whole address that a packet goes to, if that is loaded first, may be one of these.
fn may_go_to_address(rest: &[Expression], at: &[IpAddr]) -> bool {
    let [load, compared, ..] = rest else { return true };
    let is_loaded = |(offset, _): &(u32, usize)| is_payload(load, libc::NFT_PAYLOAD_NETWORK_HEADER, *offset);
    let Some((_, length)) = DESTINATIONS.into_iter().find(is_loaded) else { return true };
    let Some(with) = equal(compared).filter(|with| with.len() == length) else { return true };
    at.iter().any(|address| match address {
        IpAddr::V4(v4) => v4.octets() == with,
        IpAddr::V6(v6) => v6.octets() == with,
    })
}

/// What iptables' matches of protocols say of ports.
fn may_match(expression: &Expression, asked: &HostPort) -> bool {
    if expression.name != "match" {
        return true;
    }
    let name = expression.text(NFTA_MATCH_NAME).unwrap_or_default();
    let number = match name.as_str() {
        "tcp" => libc::IPPROTO_TCP,
        "udp" => libc::IPPROTO_UDP,
        _ => return true,
    };
    let Some(ports) = expression.attribute(NFTA_MATCH_INFO).and_then(|info| info.get(XT_PORTS..XT_PORTS + 4))
    else {
        return true;
    };
    let [low, high] = [0, 2].map(|at| u16::from_ne_bytes([ports[at], ports[at + 1]]));
    let flags = XT_INVERTED.iter().find(|(of, _)| *of == name).and_then(|(_, at)| told(expression, *at));
    let is_inverted = flags.unwrap_or_default() & XT_INVERTS_PORTS != 0;
    number == i32::from(asked.protocol) && (low..=high).contains(&asked.port) != is_inverted
}
