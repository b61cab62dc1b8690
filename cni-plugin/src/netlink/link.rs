//! Links: requests about them, and the few of their attributes that matter here.

use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_ECHO, NLM_F_EXCL, NlasIterator};
use netlink_packet_route::link::{
    InfoBridgePort, InfoData, InfoKind, InfoPortData, InfoPortKind, InfoVeth, InfoVlan, LinkAttribute,
    LinkExtentMask, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::connection::Answer;
use super::request::Request;
use crate::mac::Mac;

const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_LINK: u16 = 5;
const IFLA_MASTER: u16 = 10;
const IFLA_OPERSTATE: u16 = 16;
const IFLA_LINKINFO: u16 = 18;
const IFLA_IFALIAS: u16 = 20;
const IFLA_AF_SPEC: u16 = 26;
const IFLA_LINK_NETNSID: u16 = 37;
const IFLA_INET6_CONF: u16 = 2;
const AF_INET6: u16 = 10;
/// The place of `accept_ra` in `IFLA_INET6_CONF` (`DEVCONF_ACCEPT_RA`), which is an array of 32-bit numbers.
const ACCEPT_RA: usize = 3;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const IFLA_VLAN_ID: u16 = 1;
const IFLA_INFO_PORT_DATA: u16 = 5;
const IFLA_BRPORT_ISOLATED: u16 = 33;
const IFLA_BRPORT_LOCKED: u16 = 39;
const IF_OPER_UP: u8 = 6;
const RTM_NEWLINK: u16 = 16;
/// Bytes of `struct ifinfomsg`.
const HEADER: usize = 16;

/// How a link is named in a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Selector<'a> {
    /// By name.
    Name(&'a str),
    /// By ifindex.
    Index(u32),
}

/// What the kernel says about a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// Its ifindex.
    pub(crate) index: u32,
    /// Its name.
    pub(crate) name: String,
    /// Its address, if it has an Ethernet one.
    pub(crate) mac: Option<Mac>,
    /// Its MTU in bytes.
    pub(crate) mtu: u32,
    /// `veth`, `bridge` and so on; none for devices without a kind.
    pub(crate) kind: Option<String>,
    /// The bridge that it is a port of.
    pub(crate) master: Option<u32>,
    /// The ifindex of a veth's other end, in that end's namespace; of a VLAN device's master.
    pub(crate) peer: Option<u32>,
    /// The namespace of the other end as this one numbers it (`man 7 rtnetlink`, `IFLA_LINK_NETNSID`); none if that is the same.
    pub(crate) peer_namespace: Option<i32>,
    /// Whether it is administratively up.
    pub(crate) up: bool,
    /// Whether it can carry packets (RFC 2863, `ifOperStatus` up).
    pub(crate) operational: bool,
    /// Whether it is promiscuous by its own flag.
    pub(crate) promiscuous: bool,
    /// The text that `ip link` shows as alias.
    pub(crate) alias: Option<String>,
    /// How a bridge treats it as a port.
    pub(crate) port: PortFlags,
    /// Whether it leads back to the node itself.
    pub(crate) loopback: bool,
    /// The VLAN that it is a device of.
    pub(crate) vlan: Option<u16>,
    /// Whether the node would take routes and addresses from router advertisements that reach it.
    pub(crate) accepts_routers: bool,
}

/// What a bridge port may do less than another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PortFlags {
    /// Whether it reaches no other such port.
    pub(crate) isolated: bool,
    /// Whether only stations that the bridge was told of may send by it; none before Linux 5.18.
    pub(crate) locked: Option<bool>,
}

impl Link {
    /// Reads the first link in `answers`.
    pub(crate) fn first(answers: &[Answer]) -> Option<Self> {
        Self::all(answers).into_iter().next()
    }

    /// Reads every link in `answers`. By hand, so that attributes of kernels to come cannot fail an ADD.
    pub(crate) fn all(answers: &[Answer]) -> Vec<Self> {
        answers
            .iter()
            .filter(|answer| answer.kind == RTM_NEWLINK)
            .filter_map(|answer| parse(&answer.payload))
            .collect()
    }
}

fn parse(payload: &[u8]) -> Option<Link> {
    let (header, attributes) = payload.split_at_checked(HEADER)?;
    let flags = LinkFlags::from_bits_retain(number(&header[8..12])?);
    let mut link = Link {
        index: number(&header[4..8])?,
        name: String::new(),
        mac: None,
        mtu: 0,
        kind: None,
        master: None,
        peer: None,
        peer_namespace: None,
        up: flags.contains(LinkFlags::Up),
        operational: false,
        promiscuous: flags.contains(LinkFlags::Promisc),
        alias: None,
        port: PortFlags::default(),
        loopback: flags.contains(LinkFlags::Loopback),
        vlan: None,
        accepts_routers: false,
    };
    for attribute in NlasIterator::new(attributes) {
        let attribute = attribute.ok()?;
        let value = attribute.value();
        match attribute.kind() {
            IFLA_ADDRESS => link.mac = value.try_into().ok().map(Mac::new),
            IFLA_IFNAME => link.name = text(value),
            IFLA_MTU => link.mtu = number(value)?,
            IFLA_LINK => link.peer = number(value),
            IFLA_LINK_NETNSID => link.peer_namespace = value.try_into().ok().map(i32::from_ne_bytes),
            IFLA_MASTER => link.master = number(value),
            IFLA_OPERSTATE => link.operational = value == [IF_OPER_UP],
            IFLA_IFALIAS => link.alias = Some(text(value)),
            IFLA_AF_SPEC => link.accepts_routers = accepts_routers(value).unwrap_or_default(),
            IFLA_LINKINFO => {
                for info in NlasIterator::new(value).filter_map(Result::ok) {
                    match info.kind() {
                        IFLA_INFO_KIND => link.kind = Some(text(info.value())),
                        // The kind comes first.
                        IFLA_INFO_DATA if link.kind.as_deref() == Some("vlan") => {
                            link.vlan = vlan_id(info.value());
                        }
                        IFLA_INFO_PORT_DATA => link.port = port_flags(info.value()),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    Some(link)
}

fn port_flags(attributes: &[u8]) -> PortFlags {
    let mut flags = PortFlags::default();
    for flag in NlasIterator::new(attributes).filter_map(Result::ok) {
        let is_set = flag.value() == [1];
        match flag.kind() {
            IFLA_BRPORT_ISOLATED => flags.isolated = is_set,
            IFLA_BRPORT_LOCKED => flags.locked = Some(is_set),
            _ => {}
        }
    }
    flags
}

/// None on a kernel without IPv6.
fn accepts_routers(families: &[u8]) -> Option<bool> {
    let find = |attributes, kind| {
        let mut attributes = NlasIterator::new(attributes).filter_map(Result::ok);
        attributes.find(|attribute| attribute.kind() == kind)
    };
    let family = find(families, AF_INET6)?;
    let settings = find(family.value(), IFLA_INET6_CONF)?;
    Some(number(settings.value().chunks(4).nth(ACCEPT_RA)?)? != 0)
}

fn vlan_id(attributes: &[u8]) -> Option<u16> {
    let mut attributes = NlasIterator::new(attributes).filter_map(Result::ok);
    let id = attributes.find(|attribute| attribute.kind() == IFLA_VLAN_ID)?;
    Some(u16::from_ne_bytes(id.value().try_into().ok()?))
}

fn number(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.strip_suffix(&[0]).unwrap_or(bytes)).into_owned()
}

fn message(selector: Selector<'_>) -> LinkMessage {
    let mut message = LinkMessage::default();
    match selector {
        Selector::Name(name) => message.attributes.push(LinkAttribute::IfName(name.to_owned())),
        Selector::Index(index) => message.header.index = index,
    }
    message
}

impl std::fmt::Display for Selector<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => write!(f, "`{name}`"),
            Self::Index(index) => write!(f, "the link with index {index}"),
        }
    }
}

/// Asks for a link.
pub(crate) fn get_link(selector: Selector<'_>) -> Request {
    let mut message = message(selector);
    message.attributes.push(LinkAttribute::ExtMask(vec![LinkExtentMask::SkipStats]));
    Request::new(format!("look up {selector}"), RouteNetlinkMessage::GetLink(message), 0)
}

/// Asks for every link, or for every port of a bridge.
pub(crate) fn list_links(master: Option<u32>) -> Request {
    let mut message = LinkMessage::default();
    message.attributes.push(LinkAttribute::ExtMask(vec![LinkExtentMask::SkipStats]));
    message.attributes.extend(master.map(LinkAttribute::Controller));
    Request::list("list the links".to_owned(), RouteNetlinkMessage::GetLink(message))
}

/// Makes a bridge, down. Its address is chosen here and thereby pinned: it will not follow its ports'.
pub(crate) fn add_bridge(name: &str, mtu: Option<u32>, mac: Mac) -> Request {
    let mut message = message(Selector::Name(name));
    message.attributes.push(LinkAttribute::Address(mac.bytes().to_vec()));
    message.attributes.extend(mtu.map(LinkAttribute::Mtu));
    message.attributes.push(LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Bridge)]));
    Request::new(
        format!("add bridge `{name}`"),
        RouteNetlinkMessage::NewLink(message),
        NLM_F_CREATE | NLM_F_EXCL,
    )
}

/// A VLAN device to be made.
#[derive(Debug)]
pub(crate) struct VlanDevice<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// The interface that it is on, where the request is made.
    pub(crate) master: u32,
    /// Its VLAN.
    pub(crate) id: u16,
    /// Its MTU.
    pub(crate) mtu: u32,
    /// Where it is to be, if not where the request is made.
    pub(crate) namespace: Option<BorrowedFd<'a>>,
}

/// Makes a VLAN device, down.
pub(crate) fn add_vlan(device: &VlanDevice<'_>) -> Request {
    let mut message = message(Selector::Name(device.name));
    message.attributes.push(LinkAttribute::Link(device.master));
    message.attributes.push(LinkAttribute::Mtu(device.mtu));
    message
        .attributes
        .extend(device.namespace.map(|namespace| LinkAttribute::NetNsFd(namespace.as_raw_fd())));
    message.attributes.push(LinkAttribute::LinkInfo(vec![
        LinkInfo::Kind(InfoKind::Vlan),
        LinkInfo::Data(InfoData::Vlan(vec![InfoVlan::Id(device.id)])),
    ]));
    Request::new(
        format!("add VLAN device `{}`", device.name),
        RouteNetlinkMessage::NewLink(message),
        NLM_F_CREATE | NLM_F_EXCL,
    )
}

/// A veth pair to be made: one end here, the other born in the container.
#[derive(Debug)]
pub(crate) struct Veth<'a> {
    /// The name of the end that stays.
    pub(crate) host: &'a str,
    /// The name of the end in the container.
    pub(crate) container: &'a str,
    /// The container's namespace.
    pub(crate) namespace: BorrowedFd<'a>,
    /// The container end's address.
    pub(crate) mac: Mac,
    /// MTU of both ends; none leaves the kernel's default.
    pub(crate) mtu: Option<u32>,
}

/// Makes a veth pair, both ends down, and has the kernel show the end here as it was made (Linux 6.2; older ones show nothing).
pub(crate) fn add_veth(veth: &Veth<'_>) -> Request {
    let mut peer = message(Selector::Name(veth.container));
    peer.attributes.push(LinkAttribute::Address(veth.mac.bytes().to_vec()));
    peer.attributes.push(LinkAttribute::NetNsFd(veth.namespace.as_raw_fd()));
    peer.attributes.extend(one_queue());
    peer.attributes.extend(veth.mtu.map(LinkAttribute::Mtu));
    let mut message = message(Selector::Name(veth.host));
    message.attributes.extend(one_queue());
    message.attributes.extend(veth.mtu.map(LinkAttribute::Mtu));
    message.attributes.push(LinkAttribute::LinkInfo(vec![
        LinkInfo::Kind(InfoKind::Veth),
        LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
    ]));
    let what = format!("add veth pair `{}`, `{}`", veth.host, veth.container);
    Request::new(what, RouteNetlinkMessage::NewLink(message), NLM_F_CREATE | NLM_F_EXCL | NLM_F_ECHO)
}

/// One queue each way, which is all that the kernel uses of a veth unless it is told otherwise. Left to itself it makes one for each
/// processor, shows them in sysfs, and takes all but the first away again (`veth_init_queues`, drivers/net/veth.c).
fn one_queue() -> [LinkAttribute; 2] {
    [LinkAttribute::NumTxQueues(1), LinkAttribute::NumRxQueues(1)]
}

/// Deletes a link; both ends, if it is a veth's.
pub(crate) fn delete_link(selector: Selector<'_>) -> Request {
    Request::new(format!("delete {selector}"), RouteNetlinkMessage::DelLink(message(selector)), 0)
}

/// Writes a link's alias.
pub(crate) fn set_alias(selector: Selector<'_>, alias: &str) -> Request {
    let mut message = message(selector);
    message.attributes.push(LinkAttribute::IfAlias(alias.to_owned()));
    Request::new(format!("write the alias of {selector}"), RouteNetlinkMessage::SetLink(message), 0)
}

/// Sets a link's address.
pub(crate) fn set_address(index: u32, mac: Mac) -> Request {
    let mut message = message(Selector::Index(index));
    message.attributes.push(LinkAttribute::Address(mac.bytes().to_vec()));
    Request::new("set the bridge's address".to_owned(), RouteNetlinkMessage::SetLink(message), 0)
}

/// Sets a link up.
pub(crate) fn set_up(selector: Selector<'_>) -> Request {
    let mut message = message(selector);
    message.header.flags = LinkFlags::Up;
    message.header.change_mask = LinkFlags::Up;
    Request::new(format!("set {selector} up"), RouteNetlinkMessage::SetLink(message), 0)
}

/// Sets a link down.
pub(crate) fn set_down(index: u32) -> Request {
    let mut message = message(Selector::Index(index));
    message.header.change_mask = LinkFlags::Up;
    Request::new(format!("set link {index} down"), RouteNetlinkMessage::SetLink(message), 0)
}

/// Sets a link's promiscuous flag.
pub(crate) fn set_promiscuous(index: u32) -> Request {
    let mut message = message(Selector::Index(index));
    message.header.flags = LinkFlags::Promisc;
    message.header.change_mask = LinkFlags::Promisc;
    Request::new("make the bridge promiscuous".to_owned(), RouteNetlinkMessage::SetLink(message), 0)
}

/// Makes a link a port of a bridge.
pub(crate) fn enslave(index: u32, bridge: u32) -> Request {
    let mut message = message(Selector::Index(index));
    message.attributes.push(LinkAttribute::Controller(bridge));
    Request::new("make the veth a port of the bridge".to_owned(), RouteNetlinkMessage::SetLink(message), 0)
}

/// Sets a bridge port's flags, as hairpin mode and isolation. The link must be a port already.
pub(crate) fn set_port_flags(index: u32, flags: Vec<InfoBridgePort>) -> Request {
    let mut message = message(Selector::Index(index));
    message.header.interface_family = AddressFamily::Unspec;
    message.attributes.push(LinkAttribute::LinkInfo(vec![
        LinkInfo::PortKind(InfoPortKind::Bridge),
        LinkInfo::PortData(InfoPortData::BridgePort(flags)),
    ]));
    Request::new("set the bridge port's flags".to_owned(), RouteNetlinkMessage::NewLink(message), 0)
}
