//! Routes of the main table that belong to one program, by the protocol number that it gives them (rtnetlink(7), `rtm_protocol`).

use std::net::IpAddr;

use ipnet::IpNet;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::connection::Connection;
use crate::error::{NetlinkError, unless};
use crate::request::{MAKE, Request};
use crate::route::{family_of, ip, routes};

/// A route by a gateway that is on an interface's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeptRoute {
    /// Where it leads.
    pub destination: IpNet,
    /// By whom.
    pub gateway: IpAddr,
    /// Out of this interface.
    pub index: u32,
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
        let destination = IpNet::new(destination?, message.header.destination_prefix_length).ok()?;
        Some(Self { destination, gateway: gateway?, index: index? })
    }

    fn message(&self, protocol: u8) -> RouteMessage {
        let mut message = RouteMessage::default();
        message.header.address_family = family_of(self.gateway);
        message.header.destination_prefix_length = self.destination.prefix_len();
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::from(protocol);
        message.header.scope = RouteScope::Universe;
        message.header.kind = RouteType::Unicast;
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
        let mut messages = connection.list(routes(family))?;
        messages.retain(|message: &RouteMessage| {
            let header = &message.header;
            header.table == RouteHeader::RT_TABLE_MAIN && u8::from(header.protocol) == protocol
        });
        found.extend(messages.iter().filter_map(KeptRoute::read));
    }
    Ok(found)
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
    connection.run(Request::new(what, RouteNetlinkMessage::NewRoute(route.message(protocol)), flags))
}

/// Removes a route; it may be gone.
///
/// # Errors
/// Every other kind of [`NetlinkError`].
pub fn take(connection: &mut Connection, route: &KeptRoute, protocol: u8) -> Result<(), NetlinkError> {
    let what = format!("remove the route {} via {}", route.destination, route.gateway);
    let message = RouteNetlinkMessage::DelRoute(route.message(protocol));
    let taken = connection.run(Request::new(what, message, 0));
    unless(taken, |error| error.is_no_route() || error.is_missing())
}
