//! Changes of links.

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    AfSpecInet6, AfSpecUnspec, In6AddrGenMode, InfoBridgePort, InfoPortData, InfoPortKind, LinkAttribute,
};
use rtnetlink::{LinkMessageBuilder, LinkUnspec};

use super::Selector;
use crate::request::Request;

fn set(what: String, message: LinkMessageBuilder<LinkUnspec>) -> Request {
    Request::new(what, RouteNetlinkMessage::SetLink(message.build()), 0)
}

/// Deletes a link; both ends, if it is a veth's.
pub fn delete_link(selector: Selector<'_>) -> Request {
    let message = RouteNetlinkMessage::DelLink(selector.message().build());
    Request::new(format!("delete {selector}"), message, 0)
}

/// Sets a link up.
pub fn set_link_up(selector: Selector<'_>) -> Request {
    set(format!("set {selector} up"), selector.message().up())
}

/// Sets a link down.
pub fn set_link_down(index: u32) -> Request {
    let selector = Selector::Index(index);
    set(format!("set {selector} down"), selector.message().down())
}

/// Has a link take every packet.
pub fn set_promiscuous(index: u32) -> Request {
    let selector = Selector::Index(index);
    set(format!("make {selector} promiscuous"), selector.message().promiscuous(true))
}

/// Writes a link's alias.
pub fn set_alias(selector: Selector<'_>, alias: &str) -> Request {
    set(format!("write the alias of {selector}"), selector.message().alias(alias))
}

/// Gives a link an Ethernet address; a bridge takes no port's from then on.
pub fn set_mac(index: u32, mac: [u8; 6]) -> Request {
    let selector = Selector::Index(index);
    set(format!("set the address of {selector}"), selector.message().address(mac.to_vec()))
}

/// Gives a link another MTU.
pub fn set_mtu(index: u32, mtu: u32) -> Request {
    let selector = Selector::Index(index);
    set(format!("set the MTU of {selector}"), selector.message().mtu(mtu))
}

/// The largest packets that a link is to be handed, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketSizes {
    /// Of IPv6; kernels before Linux 6.3 have no other.
    pub ipv6: u32,
    /// Of IPv4.
    pub ipv4: u32,
    /// Whether the link also merges what it receives into such packets (GRO).
    pub merges: bool,
}

/// Gives a link larger packets, or smaller ones. The kernel refuses more than the driver takes (`EINVAL`), and skips what it does not know.
pub fn set_packet_sizes(index: u32, sizes: PacketSizes) -> Request {
    let PacketSizes { ipv6, ipv4, merges } = sizes;
    let selector = Selector::Index(index);
    // The kernel takes a size of up to 64 KiB for both families, so IPv4's comes last.
    let attributes = [
        Some(LinkAttribute::GsoMaxSize(ipv6)),
        merges.then_some(LinkAttribute::GroMaxSize(ipv6)),
        Some(LinkAttribute::GsoIpv4MaxSize(ipv4)),
        merges.then_some(LinkAttribute::GroIpv4MaxSize(ipv4)),
    ];
    let message =
        attributes.into_iter().flatten().fold(selector.message(), LinkMessageBuilder::append_extra_attribute);
    set(format!("set the largest packets of {selector}"), message)
}

/// Makes a link a port of a bridge.
pub fn set_master(index: u32, bridge: u32) -> Request {
    let selector = Selector::Index(index);
    set(format!("make {selector} a port of the bridge"), selector.message().controller(bridge))
}

/// Takes a port out of its bridge.
pub fn leave_master(index: u32) -> Request {
    let selector = Selector::Index(index);
    set(format!("take {selector} out of its bridge"), selector.message().nocontroller())
}

/// Has a link make no IPv6 address of its own, from the next time that it comes up.
pub fn set_no_link_local(index: u32) -> Request {
    let selector = Selector::Index(index);
    let none = AfSpecUnspec::Inet6(vec![AfSpecInet6::AddrGenMode(In6AddrGenMode::None)]);
    let message = selector.message().append_extra_attribute(LinkAttribute::AfSpecUnspec(vec![none]));
    set(format!("keep {selector} from making an address"), message)
}

/// Sets a bridge port's flags, as hairpin mode and isolation. The link must be a port already. Kernels skip what they do not know.
pub fn set_port_flags(index: u32, flags: Vec<InfoBridgePort>) -> Request {
    let message = LinkUnspec::new_with_index(index)
        .set_port_kind(InfoPortKind::Bridge)
        .set_port_data(InfoPortData::BridgePort(flags));
    Request::new("set the bridge port's flags", RouteNetlinkMessage::NewLink(message.build()), 0)
}
