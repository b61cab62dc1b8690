//! Forwarding: turned on for the families that the node is a gateway of, and not at the cost of the node's own routers.

use std::collections::BTreeSet;

use ipnet::IpNet;
use netlink_packet_route::route::{RouteAttribute, RouteMessage, RouteProtocol};
use shunt_netlink::AddressFamily;
use shunt_netlink::link::{Link, links};
use shunt_netlink::netconf::{Forwards, forwarding};
use shunt_netlink::route::{family_of, routes};

use crate::error::Error;
use crate::node::{Node, sysctl};

const IPV4: &str = "net/ipv4/ip_forward";
const IPV6: &str = "net/ipv6/conf/all/forwarding";

/// The setting by which a link hears router advertisements: 0 not, 1 unless the node forwards, 2 also then
/// (Documentation/networking/ip-sysctl.rst).
pub(super) fn accept_ra(link: &str) -> String {
    format!("net/ipv6/conf/{link}/accept_ra")
}

/// Lets the node forward the families of the gateways.
pub(super) fn forward(node: &mut Node, gateways: &[IpNet]) -> Result<(), Error> {
    for (family, setting) in [(AddressFamily::Inet, IPV4), (AddressFamily::Inet6, IPV6)] {
        let is_in = |gateway: &IpNet| family_of(gateway.addr()) == family;
        // Writing makes the kernel go through every interface. One that does not answer is written to.
        if !gateways.iter().any(is_in)
            || matches!(node.netlink.get(forwarding(family)), Ok(Some(Forwards(true))))
        {
            continue;
        }
        if family == AddressFamily::Inet6 {
            keep_routers(node)?;
        }
        sysctl::write(setting, "1")?;
    }
    Ok(())
}

/// The kernel removes the routes that it has from routers when the node begins to forward (`rt6_purge_dflt_routers`), and renews no
/// address from then on, except by links that are to hear routers even so. These are the links by which a router was heard; no others,
/// so that nobody else becomes the node's router.
fn keep_routers(node: &mut Node) -> Result<(), Error> {
    let routes = node.netlink.list(routes(AddressFamily::Inet6))?;
    let advertised = routes.iter().filter(|route| route.header.protocol == RouteProtocol::Ra);
    let ways: BTreeSet<u32> = advertised.filter_map(interface).collect();
    // The kernel notes a router only after it has asked for one.
    let hears = |link: &Link| link.accepts_routers && (link.has_heard_router || ways.contains(&link.index));
    for link in node.netlink.list(links())?.into_iter().filter(hears) {
        let set = sysctl::ensure(&accept_ra(&link.name), "2");
        // A link may go at any moment, and is nobody's way then.
        if sysctl::read(&accept_ra(&link.name)).is_some() {
            set?;
        }
    }
    Ok(())
}

/// The interface that a route leads out by.
fn interface(route: &RouteMessage) -> Option<u32> {
    route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Oif(index) => Some(*index),
        _ => None,
    })
}
