//! VXLAN devices (RFC 7348) that learn nothing: whoever makes one says where each station is ([`crate::vtep`]).

use std::net::IpAddr;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::InfoVxlan;
use nix::libc;
use rtnetlink::LinkVxlan;

use super::{Link, Selector, asked};
use crate::attribute::{find, typed};
use crate::request::{MAKE, Reply, Request};

/// Bytes of `struct ifinfomsg`.
const HEADER: usize = 16;

/// What of a VXLAN device cannot be changed once it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vxlan {
    /// Its network identifier, 24 bits.
    pub id: u32,
    /// The UDP port that it sends to and listens on.
    pub port: u16,
    /// The node's address that it sends from; its family is that of the packets outside.
    pub local: IpAddr,
    /// Whether it takes from what comes in where stations are.
    pub learns: bool,
}

/// A link, and how it encapsulates, if it is a VXLAN device with an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VxlanLink {
    /// The link.
    pub link: Link,
    /// How it encapsulates.
    pub vxlan: Option<Vxlan>,
}

impl Reply for VxlanLink {
    fn read(payload: &[u8]) -> Option<Self> {
        let link = Link::read(payload)?;
        let info = find(payload.get(HEADER..)?, libc::IFLA_LINKINFO).unwrap_or_default();
        let data = find(info, libc::IFLA_INFO_DATA).unwrap_or_default();
        let vxlan = (link.kind.as_deref() == Some("vxlan")).then(|| read(data)).flatten();
        Some(Self { link, vxlan })
    }
}

fn read(data: &[u8]) -> Option<Vxlan> {
    let (mut id, mut port, mut local, mut learns) = (None, None, None, true);
    for said in typed::<InfoVxlan>(data) {
        match said {
            InfoVxlan::Id(said) => id = Some(said),
            InfoVxlan::Port(said) => port = Some(said),
            InfoVxlan::Local(ip) => local = Some(IpAddr::V4(ip)),
            InfoVxlan::Local6(ip) => local = Some(IpAddr::V6(ip)),
            InfoVxlan::Learning(said) => learns = said,
            _ => {}
        }
    }
    Some(Vxlan { id: id?, port: port?, local: local?, learns })
}

/// Asks for a link and how it encapsulates.
pub fn vxlan_link(name: &str) -> Request<VxlanLink> {
    let selector = Selector::Name(name);
    Request::new(format!("look up {selector}"), asked(selector.message()), 0)
}

/// Makes a VXLAN device, down, with the name, MTU and Ethernet address of `like`, under an ifindex that must be free: a later message
/// of the same datagram can name it by that.
pub fn add_vxlan(index: u32, like: &Link, vxlan: &Vxlan) -> Request {
    let message = LinkVxlan::new(&like.name, vxlan.id)
        .port(vxlan.port)
        .append_info_data(InfoVxlan::Learning(vxlan.learns))
        .mtu(like.mtu)
        .index(index);
    let message = match vxlan.local {
        IpAddr::V4(ip) => message.local(ip),
        IpAddr::V6(ip) => message.local6(ip),
    };
    let message = like.mac.into_iter().fold(message, |message, mac| message.address(mac.to_vec()));
    let what = format!("add VXLAN device `{}`", like.name);
    Request::new(what, RouteNetlinkMessage::NewLink(message.build()), MAKE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_read_as_it_is_written() {
        for local in ["192.0.2.1", "2001:db8::1"] {
            let vxlan = Vxlan { id: 83, port: 8472, local: local.parse().unwrap(), learns: false };
            let like = Link { mtu: 1450, mac: Some([0x52; 6]), ..Link::named("tunnel") };
            let payload = add_vxlan(7, &like, &vxlan).payload().to_vec();
            let read = VxlanLink::read(&payload).unwrap();
            assert_eq!(read.vxlan, Some(vxlan));
            assert_eq!((read.link.index, read.link.mtu, read.link.mac), (7, 1450, Some([0x52; 6])));
        }
    }

    #[test]
    fn a_link_of_another_kind_encapsulates_nothing() {
        let payload = super::super::add_bridge(&Link::named("cni0")).payload().to_vec();
        assert_eq!(VxlanLink::read(&payload).unwrap().vxlan, None);
    }
}
