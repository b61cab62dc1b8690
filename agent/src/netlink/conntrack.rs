//! The connections that the kernel tracks in this namespace (linux/netfilter/nfnetlink_conntrack.h).

use std::net::IpAddr;

use nix::libc;
use shunt_dataplane::abi::End;
use shunt_dataplane::wire::address::{Address, L4Port};

use super::socket::{self, NetlinkError, RequestSocket};

/// Bytes of `struct nfgenmsg`: family, version, resource id.
const NFGENMSG: usize = 4;

/// `IPCTNL_MSG_CT_GET` of `NFNL_SUBSYS_CTNETLINK`.
const GET: u16 = (libc::NFNL_SUBSYS_CTNETLINK as u16) << 8 | 1;

const CTA_TUPLE_ORIG: u16 = 1;
const CTA_TUPLE_REPLY: u16 = 2;
const CTA_TUPLE_IP: u16 = 1;
const CTA_TUPLE_PROTO: u16 = 2;
const CTA_IP_V4_SRC: u16 = 1;
const CTA_IP_V4_DST: u16 = 2;
const CTA_IP_V6_SRC: u16 = 3;
const CTA_IP_V6_DST: u16 = 4;
const CTA_PROTO_NUM: u16 = 1;
const CTA_PROTO_SRC_PORT: u16 = 2;
const CTA_PROTO_DST_PORT: u16 = 3;
const CTA_PROTO_ICMP_ID: u16 = 4;
const CTA_PROTO_ICMPV6_ID: u16 = 7;

/// One direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuple {
    /// IP protocol number.
    pub protocol: u8,
    /// Who sends.
    pub source: End,
    /// Who receives.
    pub destination: End,
}

/// A tracked connection. The two tuples are each other's mirror unless the kernel translates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// As its first packet came.
    pub original: Tuple,
    /// As the answers come.
    pub reply: Tuple,
}

/// Every tracked connection, IPv4 and IPv6.
///
/// # Errors
/// The kernel has no ctnetlink, or netlink's.
pub fn connections() -> Result<Vec<Connection>, NetlinkError> {
    let mut socket = RequestSocket::open(libc::NETLINK_NETFILTER)?;
    socket.dump(GET, &[libc::AF_UNSPEC as u8, libc::NFNETLINK_V0 as u8, 0, 0], parse)
}

fn parse(payload: &[u8]) -> Option<Connection> {
    let (mut original, mut reply) = (None, None);
    socket::attributes(payload.get(NFGENMSG..)?, |kind, value| match kind {
        CTA_TUPLE_ORIG => original = tuple(value),
        CTA_TUPLE_REPLY => reply = tuple(value),
        _ => {}
    });
    Some(Connection { original: original?, reply: reply? })
}

fn tuple(bytes: &[u8]) -> Option<Tuple> {
    let (mut source, mut destination) = (None, None);
    let (mut source_port, mut destination_port) = (L4Port::default(), L4Port::default());
    let mut protocol = None;
    socket::attributes(bytes, |kind, value| match kind {
        CTA_TUPLE_IP => socket::attributes(value, |kind, value| match kind {
            CTA_IP_V4_SRC | CTA_IP_V6_SRC => source = address(value),
            CTA_IP_V4_DST | CTA_IP_V6_DST => destination = address(value),
            _ => {}
        }),
        CTA_TUPLE_PROTO => socket::attributes(value, |kind, value| match kind {
            CTA_PROTO_NUM => protocol = value.first().copied(),
            CTA_PROTO_SRC_PORT => source_port = port(value),
            CTA_PROTO_DST_PORT => destination_port = port(value),
            CTA_PROTO_ICMP_ID | CTA_PROTO_ICMPV6_ID => {
                (source_port, destination_port) = (port(value), port(value));
            }
            _ => {}
        }),
        _ => {}
    });
    Some(Tuple {
        protocol: protocol?,
        source: End { address: source?, port: source_port },
        destination: End { address: destination?, port: destination_port },
    })
}

fn address(value: &[u8]) -> Option<Address> {
    let v4 = || <[u8; 4]>::try_from(value).map(IpAddr::from);
    let v6 = || <[u8; 16]>::try_from(value).map(IpAddr::from);
    v4().or_else(|_| v6()).ok().map(Address::from)
}

fn port(value: &[u8]) -> L4Port {
    value.first_chunk().copied().map(u16::from_be_bytes).map(L4Port::from).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::attribute::attribute;
    use super::*;

    fn side(source: [u8; 4], destination: [u8; 4], source_port: u16, destination_port: u16) -> Vec<u8> {
        let ip = [attribute(CTA_IP_V4_SRC, &source), attribute(CTA_IP_V4_DST, &destination)].concat();
        let proto = [
            attribute(CTA_PROTO_NUM, &[6]),
            attribute(CTA_PROTO_SRC_PORT, &source_port.to_be_bytes()),
            attribute(CTA_PROTO_DST_PORT, &destination_port.to_be_bytes()),
        ]
        .concat();
        [attribute(CTA_TUPLE_IP | 0x8000, &ip), attribute(CTA_TUPLE_PROTO | 0x8000, &proto)].concat()
    }

    fn entry() -> Vec<u8> {
        let mut payload = vec![2, 0, 0, 0];
        payload.extend(attribute(CTA_TUPLE_ORIG | 0x8000, &side([10, 0, 0, 2], [10, 96, 0, 1], 4000, 80)));
        payload.extend(attribute(CTA_TUPLE_REPLY | 0x8000, &side([10, 0, 0, 3], [10, 0, 0, 2], 8080, 4000)));
        payload
    }

    #[test]
    fn a_translated_connection_has_two_different_tuples() {
        let connection = parse(&entry()).unwrap();
        assert_eq!(connection.original.destination.address, Address::from(IpAddr::from([10, 96, 0, 1])));
        assert_eq!(connection.original.destination.port.number(), 80);
        assert_eq!(connection.reply.source.address, Address::from(IpAddr::from([10, 0, 0, 3])));
        assert_eq!(connection.reply.source.port.number(), 8080);
    }

    #[test]
    fn an_entry_cut_anywhere_is_skipped_without_a_panic() {
        let whole = entry();
        assert!((0..whole.len()).all(|length| parse(&whole[..length]).is_none()));
    }
}
