//! Links to be made.

use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::NLM_F_ECHO;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{InfoData, InfoVeth, LinkAttribute};
use rtnetlink::{LinkBridge, LinkMessageBuilder, LinkUnspec, LinkVeth, LinkVlan};

use super::Link;
use crate::request::{MAKE, Request};

/// Makes a bridge with the name, MTU (0: the kernel's), address and flags (up, promiscuous) of `like`. An address that is given is
/// pinned: it will not follow the ports'. In this message the kernel reads no alias (`rtnl_create_link`, net/core/rtnetlink.c).
pub fn add_bridge(like: &Link) -> Request {
    let what = format!("add bridge `{}`", like.name);
    Request::new(what, RouteNetlinkMessage::NewLink(bridge(like).build()), MAKE)
}

fn bridge(like: &Link) -> LinkMessageBuilder<LinkBridge> {
    let mut message = LinkBridge::new(&like.name);
    message = if like.mtu != 0 { message.mtu(like.mtu) } else { message };
    message = if like.up { message.up() } else { message };
    message = if like.promiscuous { message.promiscuous(true) } else { message };
    like.mac.into_iter().fold(message, |message, mac| message.address(mac.to_vec()))
}

/// The same with an ifindex, which must be free: a later message of the same datagram can name the bridge by it, and no other link, whatever
/// became of this one.
pub fn add_numbered_bridge(index: u32, like: &Link) -> Request {
    let what = format!("add bridge `{}`", like.name);
    Request::new(what, RouteNetlinkMessage::NewLink(bridge(like).index(index).build()), MAKE)
}

/// A VLAN device to be made.
#[derive(Debug)]
pub struct VlanDevice<'a> {
    /// Its name.
    pub name: &'a str,
    /// The interface that it is on, where the request is made.
    pub master: u32,
    /// Its VLAN.
    pub id: u16,
    /// Its MTU.
    pub mtu: u32,
    /// Where it is to be, if not where the request is made.
    pub namespace: Option<BorrowedFd<'a>>,
}

/// Makes a VLAN device, down.
pub fn add_vlan(device: &VlanDevice<'_>) -> Request {
    let message = LinkVlan::new(device.name, device.master, device.id).mtu(device.mtu);
    let message =
        device.namespace.into_iter().fold(message, |message, to| message.setns_by_fd(to.as_raw_fd()));
    let what = format!("add VLAN device `{}`", device.name);
    Request::new(what, RouteNetlinkMessage::NewLink(message.build()), MAKE)
}

/// One end of a veth pair.
#[derive(Clone, Copy, Debug, Default)]
pub struct VethEnd<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its address; none leaves it to the kernel.
    pub mac: Option<[u8; 6]>,
    /// The bridge that it becomes a port of.
    pub master: Option<u32>,
    /// Where it is to be, if not where the request is made.
    pub namespace: Option<BorrowedFd<'a>>,
}

/// A veth pair to be made.
#[derive(Clone, Copy, Debug)]
pub struct Veth<'a> {
    /// The end that the kernel shows.
    pub end: VethEnd<'a>,
    /// The other end.
    pub peer: VethEnd<'a>,
    /// MTU of both ends; none leaves the kernel's default.
    pub mtu: Option<u32>,
}

/// Makes a veth pair, both ends down, and has the kernel show the first end as it was made, before it became a port (Linux 6.2;
/// older ones show nothing).
pub fn add_veth(veth: &Veth<'_>) -> Request<Link> {
    let Veth { end, peer, mtu } = veth;
    let other = with(LinkUnspec::new_with_name(peer.name), peer, *mtu).build();
    let message = with(LinkVeth::new(end.name, peer.name), end, *mtu)
        .set_info_data(InfoData::Veth(InfoVeth::Peer(other)));
    let what = format!("add veth pair `{}`, `{}`", end.name, peer.name);
    Request::new(what, RouteNetlinkMessage::NewLink(message.build()), MAKE | NLM_F_ECHO)
}

/// One queue each way, which is all that the kernel uses of a veth unless it is told otherwise. Left to itself it makes one for each
/// processor, shows them in sysfs, and takes all but the first away again (`veth_init_queues`, drivers/net/veth.c).
fn with<T>(message: LinkMessageBuilder<T>, end: &VethEnd<'_>, mtu: Option<u32>) -> LinkMessageBuilder<T> {
    let attributes = [
        end.mac.map(|mac| LinkAttribute::Address(mac.to_vec())),
        end.master.map(LinkAttribute::Controller),
        end.namespace.map(|namespace| LinkAttribute::NetNsFd(namespace.as_raw_fd())),
        Some(LinkAttribute::NumTxQueues(1)),
        Some(LinkAttribute::NumRxQueues(1)),
        mtu.map(LinkAttribute::Mtu),
    ];
    attributes.into_iter().flatten().fold(message, LinkMessageBuilder::append_extra_attribute)
}
