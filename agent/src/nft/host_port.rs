//! Rules that lead the node's own sockets to a host port where no program can.
//!
//! The kernel runs programs of a cgroup for connect and sendmsg of TCP and UDP, and none for SCTP (net/sctp/socket.c).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use nix::libc;

use super::expression::{Comparison, Expressions, Side};

const SCTP: u8 = 132;
const LOOPBACK_V4: IpNet = IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(127, 0, 0, 0), 8));
const LOOPBACK_V6: IpNet = IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128));

/// What the node's own sockets send to a port of the node by SCTP goes to a container.
///
/// What comes from the loopback or goes there is left alone: an answer to it that comes by a bridge would be a martian
/// (`ip_route_input_slow`), unless every bridge were told `route_localnet`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPortRule {
    /// The network's name, which `nft list ruleset` shows beside the rule.
    pub network: String,
    /// The address of the node, where the host port is of one alone. Of the family of `to`.
    pub host_ip: Option<IpAddr>,
    /// The port of the node.
    pub host_port: u16,
    /// The container's address and port.
    pub to: SocketAddr,
}

impl HostPortRule {
    pub(super) fn steps(&self) -> Expressions {
        let (family, loopback) = match self.to {
            SocketAddr::V4(_) => (libc::NFPROTO_IPV4, LOOPBACK_V4),
            SocketAddr::V6(_) => (libc::NFPROTO_IPV6, LOOPBACK_V6),
        };
        let steps = Expressions::default()
            .family(family as u8)
            .protocol(SCTP)
            .port(self.host_port)
            .address(Side::Source, Comparison::IsNot, &loopback)
            .address(Side::Destination, Comparison::IsNot, &loopback);
        let steps = match self.host_ip {
            Some(ip) => steps.address(Side::Destination, Comparison::Is, &IpNet::from(ip)),
            None => steps.for_the_node(),
        };
        steps.lead_to(self.to)
    }
}
