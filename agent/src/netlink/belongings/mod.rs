//! What an interface has that another one can be given in its place: addresses, routes and neighbours.
//!
//! Each is kept as the kernel told it, as the message that would make it anew, so that whatever this version has never heard
//! of (a metric, an encapsulation) goes along. What only the kernel can say of one is left out.

mod address;
mod neighbour;
mod octets;
mod route;

pub use address::Address;
pub use neighbour::Neighbour;
pub use route::Route;

use nix::libc;
use serde::{Deserialize, Serialize};
use shunt_agent_api::Interface;

use super::socket::{NetlinkError, RequestSocket};
use crate::nft::Prefix;

/// What of an interface can be given to another one, in the order in which that has to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Belongings {
    /// Its addresses; of those in one subnet the first is the one that the kernel takes for what it sends.
    pub addresses: Vec<Address>,
    /// Its routes in every table, first those that others lead by. Those that come with an address are among them: where both
    /// interfaces have the address, they decide which one is taken.
    pub routes: Vec<Route>,
    /// The neighbours that somebody has written down for good.
    pub neighbours: Vec<Neighbour>,
}

/// Everything that an interface has; and, for a person, the routes by next hop objects, which are others' too and cannot be told
/// to lead through another interface.
///
/// # Errors
/// Netlink's.
pub fn of(socket: &mut RequestSocket, index: u32) -> Result<(Belongings, Vec<String>), NetlinkError> {
    let addresses = address::all(socket, index)?;
    let (mut routes, mut by_objects) = (Vec::new(), Vec::new());
    for route in route::all(socket, index)? {
        match route {
            // Every interface has its own.
            Ok(route) if route.is_of_link() => {}
            Ok(route) => routes.push(route),
            Err(text) => by_objects.push(text),
        }
    }
    routes.sort_by_key(Route::leads_by_another);
    let neighbours = neighbour::all(socket, index)?;
    let neighbours = neighbours.into_iter().filter(Neighbour::is_for_good).collect();
    Ok((Belongings { addresses, routes, neighbours }, by_objects))
}

impl Belongings {
    /// Whether the node would miss anything: an address that is good beyond the link, or a route.
    pub fn matter(&self) -> bool {
        !self.routes.is_empty() || self.addresses.iter().any(Address::is_reachable)
    }

    /// The addresses, each with its subnet's length.
    pub fn prefixes(&self) -> impl Iterator<Item = Prefix> {
        self.addresses.iter().map(Address::prefix)
    }

    /// What of `present` is among these or cannot do without an address among these.
    #[must_use]
    pub fn left_in(&self, present: Self) -> Self {
        let addresses: Vec<_> = present
            .addresses
            .into_iter()
            .filter_map(|address| {
                let known = self.addresses.iter().find(|known| known.is_same(&address))?;
                Some(address.shared(known.shared))
            })
            .collect();
        let goes = |route: &Route| {
            self.routes.iter().any(|known| known.is_same(route)) || route.depends_on(&addresses)
        };
        let routes = present.routes.into_iter().filter(goes).collect();
        let neighbours = present
            .neighbours
            .into_iter()
            .filter(|one| self.neighbours.iter().any(|known| known.is_same(one)));
        Self { routes, neighbours: neighbours.collect(), addresses }
    }

    /// These and those of `others` that are not among them.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        let known = self.clone();
        let is_new = |one: &Address| !known.addresses.iter().any(|other| other.is_same(one));
        self.addresses.extend(others.addresses.into_iter().filter(is_new));
        self.routes.extend(others.routes.into_iter().filter(|route| !known.routes.contains(route)));
        let is_new = |one: &Neighbour| !known.neighbours.contains(one);
        self.neighbours.extend(others.neighbours.into_iter().filter(is_new));
        self.routes.sort_by_key(Route::leads_by_another);
        self
    }
}

/// Gives `to` these addresses, which `from` had; they work at once. It may have some.
///
/// # Errors
/// Netlink's.
pub fn give_addresses(
    socket: &mut RequestSocket,
    addresses: &[Address],
    to: &Interface,
) -> Result<(), NetlinkError> {
    for address in addresses {
        match socket.make(libc::RTM_NEWADDR, &address.at_once(to)) {
            Err(error) if error.means_exists() => continue,
            other => other?,
        }
        if let Some(lasting) = address.lasting(to) {
            socket.replace(libc::RTM_NEWADDR, &lasting)?;
        }
    }
    Ok(())
}

/// Whether these work where they are now. IPv6 makes them work from a queue of its own, a moment later.
///
/// # Errors
/// Netlink's.
pub fn work(socket: &mut RequestSocket, addresses: &[Address], at: &Interface) -> Result<bool, NetlinkError> {
    let present = address::all(socket, at.index)?;
    let waits = |one: &Address| addresses.iter().any(|other| other.is_same(one)) && one.is_tentative();
    Ok(!present.iter().any(waits))
}

/// Takes them away, the last first: without the first of a subnet the others would go with it.
///
/// # Errors
/// Netlink's, other than that there is no such address.
pub fn take_addresses(
    socket: &mut RequestSocket,
    addresses: &[Address],
    from: &Interface,
) -> Result<(), NetlinkError> {
    addresses.iter().rev().try_for_each(|address| {
        match socket.get(libc::RTM_DELADDR, &address.at_once(from), |_| {}) {
            Err(error) if error.means_no_address() || error.is_absent() => Ok(()),
            other => other,
        }
    })
}

/// Gives `to` these routes of `from`, each in its place among others to the same destination.
///
/// # Errors
/// Netlink's.
pub fn give_routes(socket: &mut RequestSocket, routes: &[Route], to: &Interface) -> Result<(), NetlinkError> {
    routes.iter().try_for_each(|route| match socket.append(libc::RTM_NEWROUTE, &route.by(to.index)) {
        Err(error) if error.means_exists() => Ok(()),
        other => other,
    })
}

/// Takes them away from `from`, the last first, but for those that come with an address which is none of `moved`.
///
/// # Errors
/// Netlink's, other than that there is no such route.
pub fn take_routes(
    socket: &mut RequestSocket,
    routes: &[Route],
    moved: &[Address],
    from: &Interface,
) -> Result<(), NetlinkError> {
    let mut staying = address::all(socket, from.index)?;
    staying.retain(|address| !moved.iter().any(|other| other.is_same(address)));
    for route in routes.iter().rev().filter(|route| !route.comes_with(&staying)) {
        match socket.get(libc::RTM_DELROUTE, &route.by(from.index), |_| {}) {
            Err(error) if error.means_no_route() || error.is_absent() => {}
            other => other?,
        }
    }
    Ok(())
}

/// Tells `to` of these neighbours, and of those that `from` knows at the moment, so that nobody has to be asked for. Of the
/// latter one that is not taken is no harm: it will be asked for.
///
/// # Errors
/// Netlink's, of those that are there for good.
pub fn give_neighbours(
    socket: &mut RequestSocket,
    neighbours: &[Neighbour],
    from: &Interface,
    to: &Interface,
) -> Result<(), NetlinkError> {
    for neighbour in neighbours {
        socket.replace(libc::RTM_NEWNEIGH, &neighbour.on(to.index))?;
    }
    for neighbour in neighbour::all(socket, from.index)?.iter().filter(|neighbour| !neighbour.is_for_good()) {
        if let Err(error @ NetlinkError::Socket(_)) =
            socket.replace(libc::RTM_NEWNEIGH, &neighbour.on(to.index))
        {
            return Err(error);
        }
    }
    Ok(())
}

/// Takes those away that were there for good.
///
/// # Errors
/// Netlink's, other than that there is no such neighbour.
pub fn take_neighbours(
    socket: &mut RequestSocket,
    neighbours: &[Neighbour],
    from: &Interface,
) -> Result<(), NetlinkError> {
    neighbours.iter().try_for_each(|neighbour| {
        match socket.get(libc::RTM_DELNEIGH, &neighbour.on(from.index), |_| {}) {
            Err(error) if error.is_absent() => Ok(()),
            other => other,
        }
    })
}
