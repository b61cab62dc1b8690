//! Routes of the main table that belong to one program, by the protocol number that it gives them (rtnetlink(7), `rtm_protocol`).
//!
//! Whatever others have to the same destination goes first: the metric of these routes is larger than any that is usual.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::route::{
    RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::connection::Connection;
use crate::error::{NetlinkError, unless};
use crate::request::{MAKE, Request};
use crate::route::{family_of, ip};

/// The metric: beyond the kernel's own for IPv6 (1024), and those of routing daemons and network managers.
const METRIC: u32 = 4096;

/// A route by a gateway that is on an interface's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeptRoute {
    /// Where it leads.
    pub destination: IpNet,
    /// By whom.
    pub gateway: IpAddr,
    /// Out of this interface.
    pub index: u32,
    /// Whether the gateway is taken to be on the link, whatever addresses the interface has (`RTNH_F_ONLINK`).
    pub on_link: bool,
}

impl KeptRoute {
    fn read(message: &RouteMessage) -> Option<Self> {
        let (mut destination, mut gateway, mut index) = (None, None, None);
        for attribute in &message.attributes {
            match attribute {
                RouteAttribute::Destination(address) => destination = ip(address),
                RouteAttribute::Gateway(address) => gateway = ip(address),
                RouteAttribute::Oif(out) => index = Some(*out),
                _ => {}
            }
        }
        let gateway = gateway?;
        // The kernel leaves it out where it is everything.
        let anywhere =
            if gateway.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let destination = destination.unwrap_or(anywhere);
        let destination = IpNet::new(destination, message.header.destination_prefix_length).ok()?;
        let on_link = message.header.flags.contains(RouteFlags::Onlink);
        Some(Self { destination, gateway, index: index?, on_link })
    }

    fn message(&self, protocol: u8) -> RouteMessage {
        let mut message = RouteMessage::default();
        message.header.address_family = family_of(self.gateway);
        message.header.destination_prefix_length = self.destination.prefix_len();
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::from(protocol);
        message.header.scope = RouteScope::Universe;
        message.header.kind = RouteType::Unicast;
        if self.on_link {
            message.header.flags = RouteFlags::Onlink;
        }
        message.attributes = vec![
            RouteAttribute::Destination(self.destination.network().into()),
            RouteAttribute::Gateway(self.gateway.into()),
            RouteAttribute::Oif(self.index),
        ];
        message
    }
}

/// The routes of a protocol, of both families.
///
/// # Errors
/// Every kind of [`NetlinkError`].
pub fn all(connection: &mut Connection, protocol: u8) -> Result<Vec<KeptRoute>, NetlinkError> {
    let mut found = Vec::new();
    for family in [AddressFamily::Inet, AddressFamily::Inet6] {
        let messages = connection.list(of_protocol(family, protocol))?;
        let own = messages.iter().filter(|message| is_of(message, family, protocol));
        found.extend(own.filter_map(KeptRoute::read));
    }
    Ok(found)
}

/// Asks for them; a kernel that checks strictly tells no others.
fn of_protocol(family: AddressFamily, protocol: u8) -> Request<RouteMessage> {
    let mut message = RouteMessage::default();
    message.header.address_family = family;
    message.header.table = RouteHeader::RT_TABLE_MAIN;
    message.header.protocol = RouteProtocol::from(protocol);
    Request::dump("list the program's routes", RouteNetlinkMessage::GetRoute(message))
}

/// Whether a route is one of these: of a family that it lacks the kernel tells those of all others.
fn is_of(message: &RouteMessage, family: AddressFamily, protocol: u8) -> bool {
    let header = &message.header;
    header.address_family == family
        && header.table == RouteHeader::RT_TABLE_MAIN
        && u8::from(header.protocol) == protocol
}

/// Adds a route, or with `replaces` puts it in the place of the one to the same destination.
///
/// # Errors
/// [`NetlinkError::is_existing`] where there is a route to the destination, unless it is replaced.
pub fn put(
    connection: &mut Connection,
    route: &KeptRoute,
    protocol: u8,
    replaces: bool,
) -> Result<(), NetlinkError> {
    let flags = if replaces { NLM_F_CREATE | NLM_F_REPLACE } else { MAKE };
    let what = format!("add the route {} via {}", route.destination, route.gateway);
    let mut message = route.message(protocol);
    message.attributes.push(RouteAttribute::Priority(METRIC));
    connection.run(Request::new(what, RouteNetlinkMessage::NewRoute(message), flags))
}

/// Removes a route, whatever its metric; it may be gone.
///
/// # Errors
/// Every other kind of [`NetlinkError`].
pub fn take(connection: &mut Connection, route: &KeptRoute, protocol: u8) -> Result<(), NetlinkError> {
    let what = format!("remove the route {} via {}", route.destination, route.gateway);
    let message = RouteNetlinkMessage::DelRoute(route.message(protocol));
    let taken = connection.run(Request::new(what, message, 0));
    unless(taken, |error| error.is_no_route() || error.is_missing())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROTOCOL: u8 = 83;

    fn route(destination: &str, gateway: &str) -> KeptRoute {
        let (destination, gateway) = (destination.parse().unwrap(), gateway.parse().unwrap());
        KeptRoute { destination, gateway, index: 7, on_link: false }
    }

    #[test]
    fn a_route_is_read_as_it_is_written_also_one_to_anywhere() {
        let on_link = KeptRoute { on_link: true, ..route("10.244.1.0/24", "10.244.1.0") };
        for written in [route("10.244.1.0/24", "192.0.2.1"), route("fd02::/64", "2001:db8::1"), on_link] {
            assert_eq!(KeptRoute::read(&written.message(PROTOCOL)), Some(written));
        }
        let mut everything = route("0.0.0.0/0", "192.0.2.1").message(PROTOCOL);
        everything.attributes.retain(|attribute| !matches!(attribute, RouteAttribute::Destination(_)));
        assert_eq!(KeptRoute::read(&everything), Some(route("0.0.0.0/0", "192.0.2.1")));
    }

    #[test]
    fn routes_of_another_family_table_or_protocol_are_none_of_these() {
        let message = route("10.244.1.0/24", "192.0.2.1").message(PROTOCOL);
        assert!(is_of(&message, AddressFamily::Inet, PROTOCOL));
        assert!(!is_of(&message, AddressFamily::Inet6, PROTOCOL));
        assert!(!is_of(&message, AddressFamily::Inet, PROTOCOL + 1));
        let mut elsewhere = message;
        elsewhere.header.table = 100;
        assert!(!is_of(&elsewhere, AddressFamily::Inet, PROTOCOL));
    }
}
