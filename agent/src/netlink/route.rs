//! Which way the kernel would send a packet of the node's own, or one that it forwards.

use std::net::IpAddr;

use nix::libc;

use super::attribute::attribute;
use super::socket::{self, NetlinkError, RequestSocket};

/// Bytes of `struct rtmsg`.
const RTMSG: usize = 12;

/// A route's MTU among its metrics (`linux/rtnetlink.h`).
const RTAX_MTU: u16 = 2;

/// Where a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHop {
    /// Out of this interface.
    pub ifindex: u32,
    /// To this neighbour: the gateway, or the destination itself.
    pub address: IpAddr,
    /// The largest packet that the route says, in bytes; none where it is the interface's word.
    pub mtu: Option<u32>,
}

/// The way from `source` to `destination`, of one family; none if there is no route. `by` is the interface that the packet came
/// in by; none where `source` is the node's.
///
/// # Errors
/// Netlink's.
pub fn get(
    socket: &mut RequestSocket,
    source: IpAddr,
    destination: IpAddr,
    by: Option<u32>,
) -> Result<Option<NextHop>, NetlinkError> {
    let (family, bits) = if destination.is_ipv4() { (libc::AF_INET, 32) } else { (libc::AF_INET6, 128) };
    let mut payload = vec![family as u8, bits, bits];
    payload.resize(RTMSG, 0);
    for (kind, address) in [(libc::RTA_DST, destination), (libc::RTA_SRC, source)] {
        payload.extend(match address {
            IpAddr::V4(v4) => attribute(kind, &v4.octets()),
            IpAddr::V6(v6) => attribute(kind, &v6.octets()),
        });
    }
    payload.extend(by.map(|by| attribute(libc::RTA_IIF, &by.to_ne_bytes())).unwrap_or_default());
    let (mut ifindex, mut gateway, mut mtu) = (None, None, None);
    let asked = socket.get(libc::RTM_GETROUTE, &payload, |answer| {
        let Some(rest) = answer.get(RTMSG..) else { return };
        socket::attributes(rest, |kind, value| match kind {
            libc::RTA_OIF => ifindex = socket::number(value),
            libc::RTA_GATEWAY => {
                let v4 = <[u8; 4]>::try_from(value).map(IpAddr::from);
                gateway = v4.or_else(|_| <[u8; 16]>::try_from(value).map(IpAddr::from)).ok();
            }
            libc::RTA_METRICS => socket::attributes(value, |metric, value| {
                if metric == RTAX_MTU {
                    mtu = socket::number(value);
                }
            }),
            _ => {}
        });
    });
    match asked {
        // No route, or one that says no.
        Err(NetlinkError::Refused(_)) => Ok(None),
        Err(error) => Err(error),
        Ok(()) => {
            Ok(ifindex.map(|ifindex| NextHop { ifindex, address: gateway.unwrap_or(destination), mtu }))
        }
    }
}
