//! For which IP a rule is.

use nix::libc;
use shunt_netlink::nf_tables::Expression;

use super::attributes::{equal, is_meta, is_payload};

/// Where Ethernet has the type of what it carries.
const ETHER_TYPE: u32 = 12;

/// The IP of the packets for which a rule is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Ip {
    V4,
    V6,
    Any,
}

impl Ip {
    /// Whether these bytes of the header are addresses, the protocol, fragments or the length of options (RFC 791, RFC 8200).
    pub(super) fn is_steady(self, offset: u32, length: u32) -> bool {
        let end = offset.saturating_add(length);
        match self {
            Self::V4 => matches!((offset, length), (0 | 6 | 9, 1) | (6, 2)) || offset >= 12 && end <= 20,
            Self::V6 => (offset, length) == (6, 1) || offset >= 8 && end <= 40,
            Self::Any => Self::V4.is_steady(offset, length) && Self::V6.is_steady(offset, length),
        }
    }
}

/// For which IP a rule of `family` is behind what it has `asked`.
pub(in super::super) fn ip(asked: &[Expression], family: u8) -> Ip {
    match family.into() {
        libc::NFPROTO_IPV4 => return Ip::V4,
        libc::NFPROTO_IPV6 => return Ip::V6,
        _ => {}
    }
    let of_family = |pair: &[Expression]| {
        let value = equal(&pair[1]).filter(|_| is_meta(&pair[0], libc::NFT_META_NFPROTO))?;
        value.first().copied().map(i32::from)
    };
    match asked.windows(2).find_map(of_family) {
        Some(libc::NFPROTO_IPV4) => return Ip::V4,
        Some(libc::NFPROTO_IPV6) => return Ip::V6,
        _ => {}
    }
    match asked.windows(2).find_map(ether_type) {
        Some([0x08, 0x00]) => Ip::V4,
        Some([0x86, 0xdd]) => Ip::V6,
        _ => Ip::Any,
    }
}

/// The type of what a frame carries, where two expressions ask for one.
pub(in super::super) fn ether_type(pair: &[Expression]) -> Option<[u8; 2]> {
    let [load, compared] = pair else { return None };
    let is_type =
        is_meta(load, libc::NFT_META_PROTOCOL) || is_payload(load, libc::NFT_PAYLOAD_LL_HEADER, ETHER_TYPE);
    equal(compared)?.try_into().ok().filter(|_| is_type)
}
