//! Has the kernel not check the windows of tracked TCP connections.
//!
//! It judges a segment by those that it saw before (`tcp_in_window`, net/netfilter/nf_conntrack_proto_tcp.c), and calls a connection invalid of which
//! it misses most. Each direction of an entry has a flag that says not to mind.

use std::net::SocketAddr;
use std::time::Duration;

use netlink_packet_core::DefaultNla;
use netlink_packet_netfilter::conntrack::{ConntrackAttribute, ProtoInfo, ProtoInfoTCP};
use nix::libc::{IPPROTO_TCP, NETLINK_NETFILTER, NFNL_SUBSYS_CTNETLINK};

use super::Tuple;
use crate::attribute::emitted;
use crate::connection::Connection;
use crate::error::NetlinkError;
use crate::request::Request;

/// `IPCTNL_MSG_CT_NEW`. Without `NLM_F_CREATE` it changes an entry that is there.
pub(super) const CHANGE: u16 = (NFNL_SUBSYS_CTNETLINK as u16) << 8;

/// `IP_CT_TCP_FLAG_BE_LIBERAL` (linux/netfilter/nf_conntrack_tcp.h).
const BE_LIBERAL: u8 = 0x08;

/// `struct nf_ct_tcp_flags`: flags, and which of them are meant. The crate's type cannot be made outside of it.
const FLAGS: [u8; 2] = [BE_LIBERAL, BE_LIBERAL];
const CTA_PROTOINFO_TCP_FLAGS_ORIGINAL: u16 = 4;
const CTA_PROTOINFO_TCP_FLAGS_REPLY: u16 = 5;

/// How long an answer may take: others wait behind it, and whoever gets none asks again.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// What became of one connection.
#[derive(Debug)]
pub enum Liberal {
    /// It is tracked, and its windows are not checked any more.
    Done,
    /// It has no entry in the zone 0.
    Untracked,
    /// The kernel has refused.
    Refused(NetlinkError),
}

/// A socket for such changes, in the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct Liberator(Connection);

impl Liberator {
    /// Opens one.
    ///
    /// # Errors
    /// [`NetlinkError::Socket`].
    pub fn open() -> Result<Self, NetlinkError> {
        Ok(Self(Connection::of(NETLINK_NETFILTER)?.with_patience(PATIENCE)?))
    }

    /// Has the windows of these TCP connections not checked, both directions of each; `ends` are in either order. All of them are one datagram, so
    /// there are to be few hundred at a time.
    ///
    /// # Errors
    /// [`NetlinkError::Socket`]: nothing is known of any of them.
    pub fn liberate(&mut self, ends: &[(SocketAddr, SocketAddr)]) -> Result<Vec<Liberal>, NetlinkError> {
        let said = self.0.batch(ends.iter().map(|(one, other)| request(*one, *other)).collect())?;
        let became = said.into_iter().map(|said| match said {
            Ok(_) => Liberal::Done,
            Err(error) if error.is_missing() => Liberal::Untracked,
            Err(error) => Liberal::Refused(error),
        });
        Ok(became.collect())
    }
}

/// The kernel finds an entry by the tuple of either direction (`ctnetlink_new_conntrack`, net/netfilter/nf_conntrack_netlink.c).
fn request(one: SocketAddr, other: SocketAddr) -> Request {
    let tuple = Tuple { protocol: IPPROTO_TCP as u8, source: one, destination: other };
    let change = ConntrackAttribute::CtaProtoInfo(vec![ProtoInfo::TCP(vec![
        ProtoInfoTCP::Other(DefaultNla::new(CTA_PROTOINFO_TCP_FLAGS_ORIGINAL, FLAGS.to_vec())),
        ProtoInfoTCP::Other(DefaultNla::new(CTA_PROTOINFO_TCP_FLAGS_REPLY, FLAGS.to_vec())),
    ])]);
    let payload = [tuple.message(), emitted(&change)].concat();
    Request::raw("have a connection's windows not checked", CHANGE, 0, payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_of_a_connection_get_the_flag() {
        let request = request("10.0.0.2:4000".parse().unwrap(), "10.0.0.3:80".parse().unwrap());
        #[rustfmt::skip]
        let expected = [
            2, 0, 0, 0,
            52, 0, 1, 0x80, // CTA_TUPLE_ORIG
            20, 0, 1, 0x80, 8, 0, 1, 0, 10, 0, 0, 2, 8, 0, 2, 0, 10, 0, 0, 3,
            28, 0, 2, 0x80, 5, 0, 1, 0, 6, 0, 0, 0, 6, 0, 2, 0, 0x0f, 0xa0, 0, 0, 6, 0, 3, 0, 0, 80, 0, 0,
            24, 0, 4, 0x80, // CTA_PROTOINFO
            20, 0, 1, 0x80, 6, 0, 4, 0, 8, 8, 0, 0, 6, 0, 5, 0, 8, 8, 0, 0,
        ];
        assert_eq!(request.payload(), expected);
    }
}
