//! Routes to the pods of other nodes, by their nodes or by the VXLAN device, under a protocol number of their own.
//!
//! Routes of other protocols are never touched, and go first: one to the same destination is a warning. A route is made again within a
//! period when somebody has deleted it, or its interface has gone down and come up.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use shunt_netlink::kept_route::{self, KeptRoute};
use shunt_netlink::route::next_hop_of_node;
use shunt_netlink::{Connection, NetlinkError};

use super::removal::PROTOCOL;

/// Has exactly these routes, and what there is to the pods in `undecided`; what could not be done, in words.
///
/// # Errors
/// The routes cannot be listed.
pub(super) fn keep(
    connection: &mut Connection,
    wanted: &BTreeMap<IpNet, KeptRoute>,
    undecided: &BTreeSet<IpNet>,
) -> Result<Vec<String>, NetlinkError> {
    let mut present: BTreeMap<IpNet, KeptRoute> = BTreeMap::new();
    let mut doubled = Vec::new();
    for route in kept_route::all(connection, PROTOCOL)? {
        doubled.extend(present.insert(route.destination, route));
    }
    let mut warnings = Vec::new();
    let is_stale = |route: &&KeptRoute| {
        !wanted.contains_key(&route.destination) && !undecided.contains(&route.destination)
    };
    let stale = present.values().filter(is_stale).chain(&doubled);
    for route in stale {
        match kept_route::take(connection, route, PROTOCOL) {
            Ok(()) => tracing::info!(to = %route.destination, by = %route.gateway, "route removed"),
            Err(error) => warnings.push(error.to_string()),
        }
    }
    for route in wanted.values().filter(|route| present.get(&route.destination) != Some(*route)) {
        let replaces = present.contains_key(&route.destination);
        match kept_route::put(connection, route, PROTOCOL, replaces) {
            Ok(()) => tracing::info!(to = %route.destination, by = %route.gateway, "route added"),
            Err(error) => warnings.push(error.to_string()),
        }
    }
    warnings.extend(wanted.values().filter_map(|route| what_goes_first(connection, route)));
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
