//! Routes: those that there are, those to be made, and which of them a packet takes.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use netlink_packet_core::{NLM_F_APPEND, NLM_F_CREATE, NLM_F_REPLACE, ParseableParametrized as _};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteLwEnCapType, RouteMessage, RouteMetric, RouteNextHop,
    RouteNextHopFlags, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use rtnetlink::RouteMessageBuilder;

use crate::attribute::{attributes, find, verbatim};
use crate::request::{Reply, Request};

/// Bytes of `struct rtmsg`.
const HEADER: usize = 12;

// The crates read the next hops of a multipath route all or none, and write an encapsulation that they misread with a panic. Both only
// have to be passed on.
const RTA_MULTIPATH: u16 = 9;
const RTA_ENCAP_TYPE: u16 = 21;
const RTA_ENCAP: u16 = 22;

/// The table of what is this host's (linux/rtnetlink.h).
const RT_TABLE_LOCAL: u8 = 255;

/// Bytes of `struct rtnexthop`.
const NEXT_HOP: usize = 8;

/// The message itself, of `RTM_NEWROUTE` or `RTM_DELROUTE`. What the crates cannot read is kept as its bytes, so that the route can be
/// made anew from its message.
impl Reply for RouteMessage {
    fn read(payload: &[u8]) -> Option<Self> {
        let mut message = Self::default();
        message.header = RouteHeader::parse(payload).ok()?;
        message.attributes = read_attributes(&message.header, payload.get(HEADER..)?);
        Some(message)
    }
}

fn read_attributes(header: &RouteHeader, bytes: &[u8]) -> Vec<RouteAttribute> {
    let as_what = (header.address_family, header.kind, RouteLwEnCapType::None);
    let read = attributes(bytes).map(|attribute| match attribute.kind() {
        RTA_MULTIPATH => RouteAttribute::MultiPath(next_hops(header, attribute.value())),
        RTA_ENCAP | RTA_ENCAP_TYPE => RouteAttribute::Other(verbatim(&attribute)),
        _ => RouteAttribute::parse_with_param(&attribute, as_what)
            .unwrap_or_else(|_| RouteAttribute::Other(verbatim(&attribute))),
    });
    read.collect()
}

/// The next hops of a multipath route, up to the first that is malformed.
fn next_hops(header: &RouteHeader, mut bytes: &[u8]) -> Vec<RouteNextHop> {
    let mut hops = Vec::new();
    // struct rtnexthop: rtnh_len, rtnh_flags, rtnh_hops, rtnh_ifindex.
    while let Some([l0, l1, flags, weight, index @ ..]) = bytes.first_chunk::<NEXT_HOP>() {
        let length = usize::from(u16::from_ne_bytes([*l0, *l1]));
        let Some(rest) = bytes.get(NEXT_HOP..length) else { break };
        let mut hop = RouteNextHop::default();
        hop.flags = RouteNextHopFlags::from_bits_retain(*flags);
        (hop.hops, hop.interface_index) = (*weight, u32::from_ne_bytes(*index));
        hop.attributes = read_attributes(header, rest);
        hops.push(hop);
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    hops
}

/// An address of a route, if it is one of IP.
pub fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some(IpAddr::V4(*address)),
        RouteAddress::Inet6(address) => Some(IpAddr::V6(*address)),
        _ => None,
    }
}

/// Asks for the routes of every table, of a family or of both.
pub fn routes(family: AddressFamily) -> Request<RouteMessage> {
    list("list the routes", family)
}

/// The same of the multipath routes.
pub fn multipath_routes(family: AddressFamily) -> Request<MultipathInterfaces> {
    list("list the multipath routes", family)
}

fn list<T>(what: &'static str, family: AddressFamily) -> Request<T> {
    let mut message = RouteMessage::default();
    message.header.address_family = family;
    Request::dump(what, RouteNetlinkMessage::GetRoute(message))
}

/// Asks for the prefixes of a family that are this host's by the table `local`.
pub fn local_prefixes(family: AddressFamily) -> Request<LocalPrefix> {
    let mut message = RouteMessage::default();
    message.header.address_family = family;
    // A kernel that checks strictly tells no others.
    message.header.table = RT_TABLE_LOCAL;
    message.header.kind = RouteType::Local;
    Request::dump("list the local routes", RouteNetlinkMessage::GetRoute(message))
}

/// A prefix that is this host's: the addresses of its interfaces, and what `ip route add local` has made so. Other routes are skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalPrefix(pub IpNet);

impl Reply for LocalPrefix {
    fn read(payload: &[u8]) -> Option<Self> {
        let message = RouteMessage::read(payload)?;
        let header = &message.header;
        if header.kind != RouteType::Local || header.table != RT_TABLE_LOCAL {
            return None;
        }
        let destination = message.attributes.iter().find_map(|attribute| match attribute {
            RouteAttribute::Destination(address) => ip(address),
            _ => None,
        })?;
        IpNet::new(destination, header.destination_prefix_length).ok().map(Self)
    }
}

/// The interfaces by which the next hops of a multipath route are reached. Other routes are skipped while they are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultipathInterfaces(pub BTreeSet<u32>);

impl Reply for MultipathInterfaces {
    fn read(payload: &[u8]) -> Option<Self> {
        let header = RouteHeader::parse(payload).ok()?;
        let hops = next_hops(&header, find(payload.get(HEADER..)?, RTA_MULTIPATH)?);
        Some(Self(hops.into_iter().map(|hop| hop.interface_index).collect()))
    }
}

/// A unicast route to be made.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// Where it leads.
    pub destination: IpNet,
    /// By whom; none where the destination is on the link.
    pub gateway: Option<IpAddr>,
    /// Its metric; 0 leaves it to the kernel.
    pub priority: u32,
    /// Its table; none for the main one.
    pub table: Option<u32>,
    /// How far its destination is (`RT_SCOPE_LINK`).
    pub scope: u8,
    /// The largest packet, in bytes; 0 for the interface's.
    pub mtu: u32,
    /// The largest TCP segment to be announced, in bytes; 0 for the kernel's.
    pub advmss: u32,
}

/// Adds a route by way of an interface; several to one destination become equal-cost paths where the kernel can.
pub fn add_route(index: u32, route: &Route) -> Request {
    put("add", index, route, NLM_F_CREATE | NLM_F_APPEND)
}

/// Puts a route in the place of the one to the same destination with the same metric; of equal-cost paths it takes the place of all.
pub fn replace_route(index: u32, route: &Route) -> Request {
    put("replace", index, route, NLM_F_CREATE | NLM_F_REPLACE)
}

fn put(verb: &str, index: u32, route: &Route, flags: u16) -> Request {
    let Route { destination, gateway, priority, table, scope, mtu, advmss } = *route;
    let mut message = RouteMessageBuilder::<IpAddr>::new()
        .protocol(RouteProtocol::Boot)
        .scope(RouteScope::from(scope))
        .output_interface(index)
        .build();
    message.header.address_family = family_of(destination.addr());
    message.header.destination_prefix_length = destination.prefix_len();
    let given = [
        (destination.prefix_len() > 0).then(|| RouteAttribute::Destination(destination.network().into())),
        gateway.map(|gateway| RouteAttribute::Gateway(gateway.into())),
        (priority > 0).then_some(RouteAttribute::Priority(priority)),
        table.map(RouteAttribute::Table),
    ];
    message.attributes.extend(given.into_iter().flatten());
    let metrics =
        [(mtu > 0).then_some(RouteMetric::Mtu(mtu)), (advmss > 0).then_some(RouteMetric::Advmss(advmss))];
    let metrics: Vec<_> = metrics.into_iter().flatten().collect();
    if !metrics.is_empty() {
        message.attributes.push(RouteAttribute::Metrics(metrics));
    }
    let what = match gateway {
        Some(gateway) => format!("{verb} route {destination} via {gateway}"),
        None => format!("{verb} route {destination}"),
    };
    Request::new(what, RouteNetlinkMessage::NewRoute(message), flags)
}

/// The family of an address.
pub fn family_of(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

/// Where the kernel would send a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHop {
    /// Out of this interface.
    pub index: u32,
    /// To this gateway; none where the destination is on the link.
    pub gateway: Option<IpAddr>,
    /// The largest packet that the route says, in bytes; none where it is the interface's word.
    pub mtu: Option<u32>,
    /// Whether the destination is an address of the node itself.
    pub is_local: bool,
}

impl Reply for NextHop {
    fn read(payload: &[u8]) -> Option<Self> {
        let (mut index, mut gateway, mut mtu) = (None, None, None);
        let message = RouteMessage::read(payload)?;
        let is_local = message.header.kind == RouteType::Local;
        for attribute in message.attributes {
            match attribute {
                RouteAttribute::Oif(out) => index = Some(out),
                RouteAttribute::Gateway(address) => gateway = ip(&address),
                RouteAttribute::Metrics(metrics) => {
                    mtu = metrics.iter().find_map(|metric| match metric {
                        RouteMetric::Mtu(mtu) => Some(*mtu),
                        _ => None,
                    });
                }
                _ => {}
            }
        }
        Some(Self { index: index?, gateway, mtu, is_local })
    }
}

/// Asks for the way from `source` to `destination`, of one family. `by` is the interface that the packet came in by; none where
/// `source` is the node's. The kernel refuses where there is no route, or one that says no.
pub fn next_hop(source: IpAddr, destination: IpAddr, by: Option<u32>) -> Request<NextHop> {
    let bits = if destination.is_ipv4() { 32 } else { 128 };
    let mut message = RouteMessage::default();
    message.header.address_family = family_of(destination);
    message.header.kind = RouteType::Unspec;
    (message.header.destination_prefix_length, message.header.source_prefix_length) = (bits, bits);
    message.attributes.push(RouteAttribute::Destination(destination.into()));
    message.attributes.push(RouteAttribute::Source(source.into()));
    message.attributes.extend(by.map(RouteAttribute::Iif));
    Request::new("look up a route", RouteNetlinkMessage::GetRoute(message), 0)
}

/// The same of a packet of the node's own, whose source the kernel chooses.
pub fn next_hop_of_node(destination: IpAddr) -> Request<NextHop> {
    let mut message = RouteMessage::default();
    message.header.address_family = family_of(destination);
    message.header.kind = RouteType::Unspec;
    message.header.destination_prefix_length = if destination.is_ipv4() { 32 } else { 128 };
    message.attributes.push(RouteAttribute::Destination(destination.into()));
    Request::new("look up a route", RouteNetlinkMessage::GetRoute(message), 0)
}
