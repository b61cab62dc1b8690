//! veth pairs of the agent's own.

use nix::libc;
use shunt_dataplane::wire::address::Mac;

use super::attribute::attribute;
use super::link::request;
use super::socket::{NetlinkError, RequestSocket};

const NLA_F_NESTED: u16 = 1 << 15;
/// What the other end is to be (linux/veth.h): a `struct ifinfomsg` and its attributes.
const VETH_INFO_PEER: u16 = 1;
/// Inside `IFLA_AF_SPEC` and `AF_INET6`, and its value for none (linux/if_link.h).
const IFLA_INET6_ADDR_GEN_MODE: u16 = 8;
const NO_LINK_LOCAL: u8 = 1;

/// Makes a pair of this name, address and MTU, with a peer in the same namespace; both are down.
///
/// # Errors
/// Netlink's, with `EEXIST` if either name is taken.
pub fn make(
    socket: &mut RequestSocket,
    (name, peer): (&str, &str),
    mac: Mac,
    mtu: u32,
) -> Result<(), NetlinkError> {
    let called = |name: &str| attribute(libc::IFLA_IFNAME, &[name.as_bytes(), &[0]].concat());
    let mtu = attribute(libc::IFLA_MTU, &mtu.to_ne_bytes());
    let other = [vec![0; 16], called(peer), mtu.clone()].concat();
    let kind = attribute(libc::IFLA_INFO_KIND, b"veth\0");
    let data =
        attribute(libc::IFLA_INFO_DATA | NLA_F_NESTED, &attribute(VETH_INFO_PEER | NLA_F_NESTED, &other));
    let payload = [
        vec![0; 16],
        called(name),
        attribute(libc::IFLA_ADDRESS, &mac.octets()),
        mtu,
        attribute(libc::IFLA_LINKINFO | NLA_F_NESTED, &[kind, data].concat()),
    ];
    socket.make(libc::RTM_NEWLINK, &payload.concat())
}

/// Has a link make no IPv6 address of its own, from the next time that it comes up.
///
/// # Errors
/// Netlink's; where there is no IPv6 there is nothing to be told.
pub fn make_no_link_local(socket: &mut RequestSocket, index: u32) -> Result<(), NetlinkError> {
    let mode = attribute(IFLA_INET6_ADDR_GEN_MODE, &[NO_LINK_LOCAL]);
    let inet6 = attribute(libc::AF_INET6 as u16 | NLA_F_NESTED, &mode);
    let families = attribute(libc::IFLA_AF_SPEC | NLA_F_NESTED, &inet6);
    socket.get(libc::RTM_SETLINK, &[&request(index)[..16], &families].concat(), |_| {})
}

/// Gives a link another MTU.
///
/// # Errors
/// Netlink's.
pub fn set_mtu(socket: &mut RequestSocket, index: u32, mtu: u32) -> Result<(), NetlinkError> {
    let mtu = attribute(libc::IFLA_MTU, &mtu.to_ne_bytes());
    socket.get(libc::RTM_SETLINK, &[&request(index)[..16], &mtu].concat(), |_| {})
}
