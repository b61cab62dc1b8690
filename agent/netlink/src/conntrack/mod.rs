//! The connections that the kernel tracks in this namespace (linux/netfilter/nfnetlink_conntrack.h).

mod find;
mod forget;
mod liberal;
mod walk;

use std::net::SocketAddr;

use netlink_packet_core::{NLM_F_DUMP, Nla as _, Parseable as _};
use netlink_packet_netfilter::conntrack::{
    ConntrackAttribute, IPTuple, ProtoInfo, ProtoInfoTCP, ProtoTuple, Protocol, Status, Tuple as Part,
};
use nix::libc::{AF_INET, AF_INET6, AF_UNSPEC, NETLINK_NETFILTER, NFNL_SUBSYS_CTNETLINK};

pub use self::find::Tracker;
pub use self::forget::forget;
pub use self::liberal::{Liberal, Liberator};
pub use self::walk::{Which, walk};
use crate::attribute::{attributes, emitted};
use crate::connection::Connection;
use crate::error::NetlinkError;
use crate::nfnetlink;
use crate::request::{Reply, Request};

/// `IPCTNL_MSG_CT_GET`.
const GET: u16 = (NFNL_SUBSYS_CTNETLINK as u16) << 8 | 1;

const CTA_TUPLE_ORIG: u16 = 1;
const CTA_TUPLE_REPLY: u16 = 2;
const CTA_STATUS: u16 = 3;
const CTA_PROTOINFO: u16 = 4;
const CTA_TIMEOUT: u16 = 7;

/// `TCP_CONNTRACK_ESTABLISHED` (linux/netfilter/nf_conntrack_tcp.h).
const ESTABLISHED: u8 = 3;

// The crates know ports, and not what stands for them in ICMP.
const CTA_PROTO_ICMP_ID: u16 = 4;
const CTA_PROTO_ICMPV6_ID: u16 = 7;

/// One direction of a connection. The ports of a protocol without any are 0; those of ICMP are both its identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuple {
    /// IP protocol number.
    pub protocol: u8,
    /// Who sends.
    pub source: SocketAddr,
    /// Who receives.
    pub destination: SocketAddr,
}

impl Tuple {
    /// A message about the connection that has this tuple, of a protocol with ports.
    fn message(&self) -> Vec<u8> {
        let Self { protocol, source, destination } = self;
        let tuple = ConntrackAttribute::CtaTupleOrig(vec![
            Part::Ip(vec![
                IPTuple::SourceAddress(source.ip()),
                IPTuple::DestinationAddress(destination.ip()),
            ]),
            Part::Proto(vec![
                ProtoTuple::Protocol(Protocol::from(*protocol)),
                ProtoTuple::SourcePort(source.port()),
                ProtoTuple::DestinationPort(destination.port()),
            ]),
        ]);
        let family = if source.is_ipv4() { AF_INET } else { AF_INET6 };
        [nfnetlink::header(family as u8), emitted(&tuple)].concat()
    }
}

/// A tracked connection. The two tuples are each other's mirror unless the kernel translates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackedConnection {
    /// As its first packet came.
    pub original: Tuple,
    /// As the answers come.
    pub reply: Tuple,
    /// Whether both sides have sent, and it is no mere question with its answer (`IPS_ASSURED`).
    pub is_assured: bool,
    /// Whether no side has begun to end it. Of TCP only that is known.
    pub is_established: bool,
    /// When it is forgotten if nothing comes any more, in seconds from then.
    pub timeout: u32,
}

/// Every tracked connection, IPv4 and IPv6.
///
/// # Errors
/// The kernel has no ctnetlink, or every kind of [`NetlinkError`].
pub fn tracked_connections() -> Result<Vec<TrackedConnection>, NetlinkError> {
    let payload = nfnetlink::header(AF_UNSPEC as u8);
    let request = Request::raw("list the tracked connections", GET, NLM_F_DUMP, payload);
    Connection::of(NETLINK_NETFILTER)?.list(request)
}

impl Reply for TrackedConnection {
    fn read(payload: &[u8]) -> Option<Self> {
        let (mut original, mut reply, mut status) = (None, None, Status::empty());
        let (mut is_established, mut timeout) = (true, 0);
        let is_read = |kind| {
            matches!(kind, CTA_TUPLE_ORIG | CTA_TUPLE_REPLY | CTA_STATUS | CTA_PROTOINFO | CTA_TIMEOUT)
        };
        let told =
            attributes(payload.get(nfnetlink::HEADER..)?).filter(|attribute| is_read(attribute.kind()));
        for attribute in told {
            match ConntrackAttribute::parse(&attribute) {
                Ok(ConntrackAttribute::CtaTupleOrig(parts)) => original = tuple(parts),
                Ok(ConntrackAttribute::CtaTupleReply(parts)) => reply = tuple(parts),
                Ok(ConntrackAttribute::CtaStatus(flags)) => status = flags,
                Ok(ConntrackAttribute::CtaTimeout(seconds)) => timeout = seconds,
                Ok(ConntrackAttribute::CtaProtoInfo(parts)) => is_established = !parts.iter().any(ends),
                Err(_) if attribute.kind() != CTA_PROTOINFO => return None,
                _ => {}
            }
        }
        let is_assured = status.contains(Status::Assured);
        Some(Self { original: original?, reply: reply?, is_assured, is_established, timeout })
    }
}

/// Whether a connection of TCP begins or ends.
fn ends(part: &ProtoInfo) -> bool {
    let ProtoInfo::TCP(told) = part else { return false };
    told.iter().any(|one| matches!(one, ProtoInfoTCP::State(state) if *state != ESTABLISHED))
}

fn tuple(parts: Vec<Part>) -> Option<Tuple> {
    let (mut source, mut destination, mut ports, mut protocol) = (None, None, (0, 0), None);
    for part in parts {
        match part {
            Part::Ip(addresses) => {
                for address in addresses {
                    match address {
                        IPTuple::SourceAddress(ip) => source = Some(ip),
                        IPTuple::DestinationAddress(ip) => destination = Some(ip),
                        _ => {}
                    }
                }
            }
            Part::Proto(numbers) => {
                for number in numbers {
                    match number {
                        ProtoTuple::Protocol(number) => protocol = Some(number.into()),
                        ProtoTuple::SourcePort(port) => ports.0 = port,
                        ProtoTuple::DestinationPort(port) => ports.1 = port,
                        ProtoTuple::Other(other)
                            if matches!(other.kind(), CTA_PROTO_ICMP_ID | CTA_PROTO_ICMPV6_ID) =>
                        {
                            let id =
                                emitted(&other).get(4..6).map_or(0, |id| u16::from_be_bytes([id[0], id[1]]));
                            ports = (id, id);
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    Some(Tuple {
        protocol: protocol?,
        source: SocketAddr::new(source?, ports.0),
        destination: SocketAddr::new(destination?, ports.1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::{attribute, nested};

    const CTA_TUPLE_IP: u16 = 1;
    const CTA_TUPLE_PROTO: u16 = 2;

    fn side(source: [u8; 4], destination: [u8; 4], proto: &[u8]) -> Vec<u8> {
        let ip = [attribute(1, &source), attribute(2, &destination)].concat();
        [nested(CTA_TUPLE_IP, &ip), nested(CTA_TUPLE_PROTO, proto)].concat()
    }

    fn tcp(source: u16, destination: u16) -> Vec<u8> {
        [attribute(1, &[6]), attribute(2, &source.to_be_bytes()), attribute(3, &destination.to_be_bytes())]
            .concat()
    }

    fn entry(original: &[u8], reply: &[u8]) -> Vec<u8> {
        [&[2, 0, 0, 0][..], &nested(CTA_TUPLE_ORIG, original), &nested(CTA_TUPLE_REPLY, reply)].concat()
    }

    fn translated() -> Vec<u8> {
        let reply = side([10, 0, 0, 3], [10, 0, 0, 2], &tcp(8080, 4000));
        entry(&side([10, 0, 0, 2], [10, 96, 0, 1], &tcp(4000, 80)), &reply)
    }

    #[test]
    fn a_translated_connection_has_two_different_tuples() {
        let connection = TrackedConnection::read(&translated()).unwrap();
        assert_eq!(connection.original.destination, "10.96.0.1:80".parse().unwrap());
        assert_eq!(connection.reply.source, "10.0.0.3:8080".parse().unwrap());
    }

    #[test]
    fn an_identifier_stands_for_both_ports_of_icmp() {
        let icmp =
            [attribute(1, &[1]), attribute(CTA_PROTO_ICMP_ID, &[0x12, 0x34]), attribute(5, &[8])].concat();
        let side = side([10, 0, 0, 2], [10, 0, 0, 3], &icmp);
        let connection = TrackedConnection::read(&entry(&side, &side)).unwrap();
        assert_eq!((connection.original.protocol, connection.original.source.port()), (1, 0x1234));
        assert_eq!(connection.original.destination.port(), 0x1234);
    }

    #[test]
    fn an_entry_cut_anywhere_is_skipped_without_a_panic() {
        let whole = translated();
        assert!((0..whole.len()).all(|length| TrackedConnection::read(&whole[..length]).is_none()));
    }
}
