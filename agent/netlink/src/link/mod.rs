//! Links: what the kernel says of them, and the requests about them.

mod change;
mod counters;
mod make;
mod read;
mod vxlan;

pub use change::{
    PacketSizes, delete_link, leave_master, set_alias, set_link_down, set_link_up, set_mac, set_master,
    set_mtu, set_no_link_local, set_packet_sizes, set_port_flags, set_promiscuous,
};
pub use counters::{LinkCounters, counters_of, link_counters};
pub use make::{Veth, VethEnd, VlanDevice, add_bridge, add_numbered_bridge, add_veth, add_vlan};
pub use read::{LargestPackets, Link};
pub use vxlan::{Vxlan, VxlanLink, add_vxlan, vxlan_link};

use std::fmt;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkExtentMask};
use rtnetlink::{LinkMessageBuilder, LinkUnspec};

use crate::request::Request;

/// How a link is named in a request.
#[derive(Clone, Copy, Debug)]
pub enum Selector<'a> {
    /// By name.
    Name(&'a str),
    /// By ifindex.
    Index(u32),
}

impl Selector<'_> {
    fn message(self) -> LinkMessageBuilder<LinkUnspec> {
        match self {
            Self::Name(name) => LinkUnspec::new_with_name(name),
            Self::Index(index) => LinkUnspec::new_with_index(index),
        }
    }
}

impl fmt::Display for Selector<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "`{name}`"),
            Self::Index(index) => write!(f, "the link with index {index}"),
        }
    }
}

fn asked(message: LinkMessageBuilder<LinkUnspec>) -> RouteNetlinkMessage {
    let without_statistics = LinkAttribute::ExtMask(vec![LinkExtentMask::SkipStats]);
    RouteNetlinkMessage::GetLink(message.append_extra_attribute(without_statistics).build())
}

/// Asks for a link.
pub fn link(selector: Selector<'_>) -> Request<Link> {
    Request::new(format!("look up {selector}"), asked(selector.message()), 0)
}

/// Asks for a link of another namespace, by the number that the socket's has for it (`IFLA_TARGET_NETNSID`, Linux 4.20).
pub fn link_elsewhere(index: u32, namespace: i32) -> Request<Link> {
    let selector = Selector::Index(index);
    let message = selector.message().append_extra_attribute(LinkAttribute::IfNetnsId(namespace));
    Request::new(format!("look up {selector} in its namespace"), asked(message), 0)
}

/// Asks for every link.
pub fn links() -> Request<Link> {
    Request::dump("list the links", asked(LinkUnspec::new_with_index(0)))
}

/// Asks for every port of a bridge. A kernel that does not know the filter lists every link.
pub fn ports(bridge: u32) -> Request<Link> {
    Request::dump("list the bridge's ports", asked(LinkUnspec::new_with_index(0).controller(bridge)))
}

#[cfg(test)]
mod tests;
