//! For which protocol a rule is.

use nix::libc;
use shunt_netlink::nf_tables::Expression;

use super::attributes::{equal, is_meta, is_payload};
use super::ip::{Ip, ip};

/// Where IPv4 has its protocol (RFC 791), and IPv6 what comes next (RFC 8200).
const PROTOCOL_V4: u32 = 9;
const NEXT_V6: u32 = 6;

pub(in super::super) const TCP: u8 = libc::IPPROTO_TCP as u8;

/// Where TCP has its flags (RFC 9293).
pub(in super::super) const TCP_FLAGS: u32 = 13;

/// The protocol for which the two expressions at `at` of a rule of a table of `family` ask.
pub(in super::super) fn protocol(rule: &[Expression], at: usize, family: u8) -> Option<u8> {
    let [load, compared] = rule.get(at..at + 2)? else { return None };
    let place = match ip(&rule[..at], family) {
        Ip::V4 => Some(PROTOCOL_V4),
        Ip::V6 => Some(NEXT_V6),
        Ip::Any => None,
    };
    let is_there = |place| is_payload(load, libc::NFT_PAYLOAD_NETWORK_HEADER, place);
    let is_protocol = is_meta(load, libc::NFT_META_L4PROTO) || place.is_some_and(is_there);
    match equal(compared)? {
        [protocol] if is_protocol => Some(*protocol),
        _ => None,
    }
}

/// Whether a rule is for TCP behind what it has `asked`.
pub(in super::super) fn is_tcp(asked: &[Expression], family: u8) -> bool {
    (0..asked.len()).any(|at| protocol(asked, at, family) == Some(TCP))
}
