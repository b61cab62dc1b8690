//! Routes to the pods of other nodes, `podCIDR via InternalIP`, under a protocol number of their own.
//!
//! Routes of other protocols are never touched, and go first: one to the same destination is a warning. A route is made again within a
//! period when somebody has deleted it, or its interface has gone down and come up.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use shunt_netlink::kept_route::{self, KeptRoute};
use shunt_netlink::route::{NextHop, next_hop_of_node};
use shunt_netlink::{Connection, NetlinkError};

/// `rtm_protocol` of these routes; iproute2 gives it no name.
pub(crate) const PROTOCOL: u8 = 83;

/// Has exactly these routes, as far as nodes are on a link; what could not be done, in words.
///
/// # Errors
/// The routes cannot be listed.
pub(crate) fn keep(hops: &[(IpNet, IpAddr)]) -> Result<Vec<String>, NetlinkError> {
    let mut connection = Connection::open()?;
    let mut present: BTreeMap<IpNet, KeptRoute> = BTreeMap::new();
    let mut doubled = Vec::new();
    for route in kept_route::all(&mut connection, PROTOCOL)? {
        doubled.extend(present.insert(route.destination, route));
    }
    let mut warnings = Vec::new();
    let mut wanted = BTreeMap::new();
    for (destination, gateway) in hops {
        match on_link(&mut connection, *gateway) {
            Ok(index) => drop(
                wanted
                    .insert(*destination, KeptRoute { destination: *destination, gateway: *gateway, index }),
            ),
            Err(why) => warnings.push(format!("no route to the pods in {destination}: {why}")),
        }
    }
    let stale = present.values().filter(|route| !wanted.contains_key(&route.destination)).chain(&doubled);
    for route in stale {
        match kept_route::take(&mut connection, route, PROTOCOL) {
            Ok(()) => tracing::info!(to = %route.destination, by = %route.gateway, "route removed"),
            Err(error) => warnings.push(error.to_string()),
        }
    }
    for route in wanted.values().filter(|route| present.get(&route.destination) != Some(*route)) {
        let replaces = present.contains_key(&route.destination);
        match kept_route::put(&mut connection, route, PROTOCOL, replaces) {
            Ok(()) => tracing::info!(to = %route.destination, by = %route.gateway, "route added"),
            Err(error) => warnings.push(error.to_string()),
        }
    }
    warnings.extend(wanted.values().filter_map(|route| what_goes_first(&mut connection, route)));
    Ok(warnings)
}

/// The warning about somebody else's route to the same destination.
fn what_goes_first(connection: &mut Connection, route: &KeptRoute) -> Option<String> {
    let hop = connection.get(next_hop_of_node(route.destination.network())).ok()??;
    (hop.gateway != Some(route.gateway)).then(|| {
        format!(
            "there is another route to {}, which goes first: delete it, or set routes = \"off\"",
            route.destination
        )
    })
}

/// Removes all of them.
///
/// # Errors
/// Netlink's.
pub(crate) fn remove() -> Result<(), NetlinkError> {
    let mut connection = Connection::open()?;
    for route in kept_route::all(&mut connection, PROTOCOL)? {
        kept_route::take(&mut connection, &route, PROTOCOL)?;
    }
    Ok(())
}

/// The interface on whose link a node is, else why it is on none.
fn on_link(connection: &mut Connection, node: IpAddr) -> Result<u32, String> {
    match connection.get(next_hop_of_node(node)) {
        Ok(Some(NextHop { gateway: None, index, is_local: false, .. })) => Ok(index),
        Ok(Some(NextHop { is_local: true, .. })) => {
            Err(format!("the node's address {node} is this node's own"))
        }
        Ok(Some(NextHop { gateway: Some(gateway), .. })) => Err(format!(
            "the node {node} is not on the link but behind {gateway}: have that router lead there, and set routes = \"off\""
        )),
        Ok(None) => Err(format!("the node {node} cannot be reached")),
        Err(error) => Err(format!("the node {node} cannot be reached: {error}")),
    }
}
