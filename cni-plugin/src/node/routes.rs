//! Routes of the kernel's as routes of a result, and back.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use netlink_packet_route::route::{
    RouteAttribute, RouteMessage, RouteMetric, RouteNextHop, RouteProtocol, RouteType,
};
use shunt_netlink::route::{self, ip, routes};
use shunt_netlink::{AddressFamily, Connection, NetlinkError, Request};

use crate::result::Route;

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

/// Reads the unicast routes of the family of `like`. Equal-cost paths are a route each, as they were added.
pub(crate) fn installed_routes(
    netlink: &mut Connection,
    like: IpAddr,
) -> Result<Vec<InstalledRoute>, NetlinkError> {
    Ok(netlink.list(routes(route::family_of(like)))?.iter().flat_map(InstalledRoute::read).collect())
}

impl InstalledRoute {
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
            AddressFamily::Inet => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            _ => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let everything = IpNet::new(nowhere, message.header.destination_prefix_length).ok()?;
        let mut installed = Self {
            index: None,
            automatic: message.header.protocol == RouteProtocol::Kernel,
            route: Route::via(everything, None),
        };
        installed.route.scope = Some(message.header.scope.into());
        message.attributes.iter().for_each(|attribute| installed.hear(attribute));
        Some(installed)
    }

    fn hear(&mut self, attribute: &RouteAttribute) {
        let route = &mut self.route;
        match attribute {
            RouteAttribute::Destination(address) => {
                let destination = ip(address).and_then(|ip| IpNet::new(ip, route.dst.prefix_len()).ok());
                route.dst = destination.unwrap_or(route.dst);
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

/// Adds a route by way of an interface.
pub(crate) fn add_route(index: u32, route: &Route) -> Request {
    route::add_route(index, &requested(route))
}

/// Puts a route in the place of the one to the same destination with the same metric.
pub(crate) fn replace_route(index: u32, route: &Route) -> Request {
    route::replace_route(index, &requested(route))
}

fn requested(route: &Route) -> route::Route {
    let &Route { dst, gw, mtu, advmss, priority, table, scope } = route;
    let [priority, mtu, advmss] = [priority, mtu, advmss].map(Option::unwrap_or_default);
    let scope = scope.unwrap_or_default();
    route::Route { destination: dst, gateway: gw, priority, table, scope, mtu, advmss }
}
