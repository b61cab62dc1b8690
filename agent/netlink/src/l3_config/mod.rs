//! What an interface has that another one can be given in its place: addresses, routes and neighbours.
//!
//! Each is kept as the kernel told it, as the message that would make it anew, so that what this version has never heard of (a metric,
//! an encapsulation) goes along. What only the kernel can say of one is left out.

mod address;
mod neighbour;
mod route;
mod wire;

pub use address::L3Address;
pub use neighbour::L3Neighbour;
pub use route::L3Route;

use ipnet::IpNet;
use netlink_packet_core::{NLM_F_APPEND, NLM_F_CREATE};
use netlink_packet_route::RouteNetlinkMessage;
use serde::{Deserialize, Serialize};

use crate::connection::Connection;
use crate::error::{NetlinkError, unless};
use crate::request::{MAKE, REPLACE, Request};

/// What of an interface can be given to another one, in the order in which that has to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct L3Config {
    /// Its addresses; of those in one subnet the first is the one that the kernel takes for what it sends.
    pub addresses: Vec<L3Address>,
    /// Its routes in every table, first those that others lead by. Those that come with an address are among them: where both
    /// interfaces have the address, they decide which one is taken.
    pub routes: Vec<L3Route>,
    /// The neighbours that somebody has written down for good.
    pub neighbours: Vec<L3Neighbour>,
}

/// Everything that an interface has; and, for a person, the routes by next hop objects, which are others' too and cannot be told to lead
/// through another interface.
pub fn l3_config(connection: &mut Connection, index: u32) -> Result<(L3Config, Vec<String>), NetlinkError> {
    let addresses = address::all(connection, index)?;
    let (mut routes, mut by_objects) = (Vec::new(), Vec::new());
    for route in route::all(connection, index)? {
        match route {
            // Every interface has its own.
            Ok(route) if route.is_of_link() => {}
            Ok(route) => routes.push(route),
            Err(text) => by_objects.push(text),
        }
    }
    routes.sort_by_key(L3Route::leads_by_another);
    let neighbours = neighbour::all(connection, index)?;
    let neighbours = neighbours.into_iter().filter(L3Neighbour::is_for_good).collect();
    Ok((L3Config { addresses, routes, neighbours }, by_objects))
}

impl L3Config {
    /// Whether the node would miss anything: an address that is good beyond the link, or a route.
    pub fn is_needed(&self) -> bool {
        !self.routes.is_empty() || self.addresses.iter().any(L3Address::is_reachable)
    }

    /// The addresses, each with its subnet's length.
    pub fn prefixes(&self) -> impl Iterator<Item = IpNet> {
        self.addresses.iter().map(L3Address::prefix)
    }

    /// What of `present` is among these or cannot do without an address among these.
    #[must_use]
    pub fn left_in(&self, present: Self) -> Self {
        let known = |address: L3Address| {
            let known = self.addresses.iter().find(|known| known.is_same(&address))?;
            Some(address.shared(known.shared))
        };
        let addresses: Vec<_> = present.addresses.into_iter().filter_map(known).collect();
        let goes = |route: &L3Route| {
            self.routes.iter().any(|known| known.is_same(route)) || route.depends_on(&addresses)
        };
        let routes = present.routes.into_iter().filter(goes).collect();
        let is_known = |one: &L3Neighbour| self.neighbours.iter().any(|known| known.is_same(one));
        Self { routes, neighbours: present.neighbours.into_iter().filter(is_known).collect(), addresses }
    }

    /// These and those of `others` that are not among them.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        let known = self.clone();
        let is_new = |one: &L3Address| !known.addresses.iter().any(|other| other.is_same(one));
        self.addresses.extend(others.addresses.into_iter().filter(is_new));
        self.routes.extend(others.routes.into_iter().filter(|route| !known.routes.contains(route)));
        let is_new = |one: &L3Neighbour| !known.neighbours.contains(one);
        self.neighbours.extend(others.neighbours.into_iter().filter(is_new));
        self.routes.sort_by_key(L3Route::leads_by_another);
        self
    }
}

/// Gives the interface `index` of this name these addresses, which work at once. It may have some.
pub fn give_addresses(
    connection: &mut Connection,
    addresses: &[L3Address],
    (index, name): (u32, &str),
) -> Result<(), NetlinkError> {
    for address in addresses {
        let message = RouteNetlinkMessage::NewAddress(address.at_once(index, name));
        match connection.run(Request::new(format!("give {name} an address"), message, MAKE)) {
            Err(error) if error.is_existing() => continue,
            other => other?,
        }
        address.lasting(index, name).map_or(Ok(()), |lasting| connection.run(lasting))?;
    }
    Ok(())
}

/// Whether these work where they are now. IPv6 makes them work from a queue of its own, a moment later.
pub fn are_usable(
    connection: &mut Connection,
    addresses: &[L3Address],
    index: u32,
) -> Result<bool, NetlinkError> {
    let present = address::all(connection, index)?;
    let waits = |one: &L3Address| addresses.iter().any(|other| other.is_same(one)) && one.is_tentative();
    Ok(!present.iter().any(waits))
}

/// Takes them away, the last first: without the first of a subnet the others would go with it.
///
/// # Errors
/// Every kind of [`NetlinkError`], other than that there is no such address.
pub fn take_addresses(
    connection: &mut Connection,
    addresses: &[L3Address],
    (index, name): (u32, &str),
) -> Result<(), NetlinkError> {
    addresses.iter().rev().try_for_each(|address| {
        let message = RouteNetlinkMessage::DelAddress(address.at_once(index, name));
        let taken = connection.run(Request::new(format!("take an address from {name}"), message, 0));
        unless(taken, |error| error.is_no_address() || error.is_missing())
    })
}

/// Has these routes lead through `index`, each in its place among others to the same destination.
pub fn give_routes(connection: &mut Connection, routes: &[L3Route], index: u32) -> Result<(), NetlinkError> {
    routes.iter().try_for_each(|route| {
        let message = RouteNetlinkMessage::NewRoute(route.by(index));
        let given = connection.run(Request::new("move a route", message, NLM_F_CREATE | NLM_F_APPEND));
        unless(given, NetlinkError::is_existing)
    })
}

/// Takes them away from `index`, the last first, but for those that come with an address which is none of `moved`.
///
/// # Errors
/// Every kind of [`NetlinkError`], other than that there is no such route.
pub fn take_routes(
    connection: &mut Connection,
    routes: &[L3Route],
    moved: &[L3Address],
    index: u32,
) -> Result<(), NetlinkError> {
    let mut staying = address::all(connection, index)?;
    staying.retain(|address| !moved.iter().any(|other| other.is_same(address)));
    routes.iter().rev().filter(|route| !route.comes_with(&staying)).try_for_each(|route| {
        let taken =
            connection.run(Request::new("remove a route", RouteNetlinkMessage::DelRoute(route.by(index)), 0));
        unless(taken, |error| error.is_no_route() || error.is_missing())
    })
}

/// Tells `to` of these neighbours, and of those that `from` knows at the moment, so that nobody has to be asked for. Of the latter one
/// that is not taken is no harm: it will be asked for.
///
/// # Errors
/// Every kind of [`NetlinkError`], of those that are there for good.
pub fn give_neighbours(
    connection: &mut Connection,
    neighbours: &[L3Neighbour],
    from: u32,
    to: u32,
) -> Result<(), NetlinkError> {
    let told = |neighbour: &L3Neighbour, flags| {
        let message = RouteNetlinkMessage::NewNeighbour(neighbour.on(to));
        Request::new("move a neighbour", message, flags)
    };
    neighbours.iter().try_for_each(|neighbour| connection.run(told(neighbour, REPLACE)))?;
    let heard = neighbour::all(connection, from)?;
    heard.iter().filter(|neighbour| !neighbour.is_for_good()).try_for_each(|neighbour| {
        unless(connection.run(told(neighbour, MAKE)), |error| error.errno().is_some())
    })
}

/// Takes those away that were there for good.
///
/// # Errors
/// Every kind of [`NetlinkError`], other than that there is no such neighbour.
pub fn take_neighbours(
    connection: &mut Connection,
    neighbours: &[L3Neighbour],
    index: u32,
) -> Result<(), NetlinkError> {
    neighbours.iter().try_for_each(|neighbour| {
        let message = RouteNetlinkMessage::DelNeighbour(neighbour.on(index));
        unless(connection.run(Request::new("remove a neighbour", message, 0)), NetlinkError::is_missing)
    })
}
