//! Routes inside a container.

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_APPEND, NLM_F_CREATE, Parseable};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteNextHop, RouteProtocol,
    RouteScope, RouteType,
};

use super::address::family;
use super::connection::Answer;
use super::request::Request;
use crate::prefix::Prefix;
use crate::result::Route;

const RTM_NEWROUTE: u16 = 24;

/// A route that the kernel has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InstalledRoute {
    /// The interface that it leaves by.
    pub(crate) index: Option<u32>,
    /// Whether the kernel made it for an address (`proto kernel`).
    pub(crate) automatic: bool,
    /// What it says.
    pub(crate) route: Route,
}

impl InstalledRoute {
    /// Reads unicast routes of all tables but `local`.
    pub(crate) fn all(answers: &[Answer]) -> Vec<Self> {
        let messages = answers.iter().filter(|answer| answer.kind == RTM_NEWROUTE);
        messages
            .filter_map(|answer| RouteMessage::parse(&answer.payload[..]).ok())
            .flat_map(|message| Self::read(&message))
            .collect()
    }

    /// Equal-cost paths are a route each, as they were added.
    fn read(message: &RouteMessage) -> Vec<Self> {
        let Some(route) = Self::read_one(message) else { return Vec::new() };
        let paths = message.attributes.iter().find_map(|attribute| match attribute {
            RouteAttribute::MultiPath(paths) => Some(paths),
            _ => None,
        });
        let Some(paths) = paths else { return vec![route] };
        let along = |path: &RouteNextHop| {
            let mut one = Self { index: Some(path.interface_index), ..route.clone() };
            path.attributes.iter().for_each(|attribute| one.hear(attribute));
            one
        };
        paths.iter().map(along).collect()
    }

    fn read_one(message: &RouteMessage) -> Option<Self> {
        if message.header.kind != RouteType::Unicast {
            return None;
        }
        let nowhere = match message.header.address_family {
            netlink_packet_route::AddressFamily::Inet => IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED),
            _ => IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED),
        };
        let mut installed = Self {
            index: None,
            automatic: message.header.protocol == RouteProtocol::Kernel,
            route: Route::via(Prefix::new(nowhere, message.header.destination_prefix_length)?, None),
        };
        installed.route.scope = Some(message.header.scope.into());
        for attribute in &message.attributes {
            installed.hear(attribute);
        }
        Some(installed)
    }

    fn hear(&mut self, attribute: &RouteAttribute) {
        let route = &mut self.route;
        match attribute {
            RouteAttribute::Destination(address) => {
                route.dst =
                    ip(address).and_then(|ip| Prefix::new(ip, route.dst.length())).unwrap_or(route.dst);
            }
            RouteAttribute::Gateway(address) => route.gw = ip(address),
            RouteAttribute::Oif(index) => self.index = Some(*index),
            RouteAttribute::Priority(priority) => route.priority = Some(*priority),
            RouteAttribute::Table(table) => route.table = Some(*table),
            RouteAttribute::Metrics(metrics) => {
                for metric in metrics {
                    match metric {
                        RouteMetric::Mtu(mtu) => route.mtu = Some(*mtu),
                        RouteMetric::Advmss(advmss) => route.advmss = Some(*advmss),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some(IpAddr::V4(*address)),
        RouteAddress::Inet6(address) => Some(IpAddr::V6(*address)),
        _ => None,
    }
}

/// Adds a route by way of an interface; several to one destination become equal-cost paths where the kernel can.
pub(crate) fn add_route(index: u32, route: &Route) -> Request {
    let mut message = RouteMessage::default();
    message.header.address_family = family(route.dst.address());
    message.header.destination_prefix_length = route.dst.length();
    message.header.protocol = RouteProtocol::Boot;
    message.header.scope = RouteScope::from(route.scope.unwrap_or(0));
    message.header.kind = RouteType::Unicast;
    message.header.table = RouteHeader::RT_TABLE_MAIN;
    if route.dst.length() > 0 {
        message.attributes.push(RouteAttribute::Destination(route.dst.network().into()));
    }
    message.attributes.push(RouteAttribute::Oif(index));
    message.attributes.extend(route.gw.map(|gw| RouteAttribute::Gateway(gw.into())));
    message.attributes.extend(route.priority.filter(|priority| *priority > 0).map(RouteAttribute::Priority));
    message.attributes.extend(route.table.map(RouteAttribute::Table));
    let mtu = route.mtu.filter(|mtu| *mtu > 0).map(RouteMetric::Mtu);
    let advmss = route.advmss.filter(|advmss| *advmss > 0).map(RouteMetric::Advmss);
    let metrics: Vec<RouteMetric> = mtu.into_iter().chain(advmss).collect();
    if !metrics.is_empty() {
        message.attributes.push(RouteAttribute::Metrics(metrics));
    }
    let what = match route.gw {
        Some(gw) => format!("add route {} via {gw}", route.dst),
        None => format!("add route {}", route.dst),
    };
    Request::new(what, RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_APPEND)
}

/// Asks for all routes of both families.
pub(crate) fn list_routes(like: IpAddr) -> Request {
    let mut message = RouteMessage::default();
    message.header.address_family = family(like);
    Request::list("list the routes".to_owned(), RouteNetlinkMessage::GetRoute(message))
}
