//! How the ways to other nodes are told from those of others, and how they are taken away.

use shunt_netlink::link::{Link, Selector, delete_link, links};
use shunt_netlink::{Connection, NetlinkError, kept_route, unless};

/// `rtm_protocol` of the agent's routes; iproute2 gives it no name.
pub(super) const PROTOCOL: u8 = 83;

/// The alias of its VXLAN devices.
pub(super) const ALIAS: &str = "shunt-vxlan";

/// Whether a link is one of the agent's VXLAN devices.
pub(crate) fn is_device(link: &Link) -> bool {
    link.kind.as_deref() == Some("vxlan") && link.alias.as_deref() == Some(ALIAS)
}

/// Removes a device, with its entries, addresses and routes; it may be gone.
///
/// # Errors
/// Netlink's.
pub(super) fn remove_device(connection: &mut Connection, link: &Link) -> Result<(), NetlinkError> {
    unless(connection.run(delete_link(Selector::Index(link.index))), NetlinkError::is_missing)?;
    tracing::info!(device = link.name, "VXLAN device removed");
    Ok(())
}

/// Removes all of the agent's devices, but for the one of this name.
///
/// # Errors
/// Netlink's; all that could be removed are.
pub(super) fn remove_devices(connection: &mut Connection, except: Option<&str>) -> Result<(), NetlinkError> {
    let links = connection.list(links())?;
    let stale = links.iter().filter(|link| is_device(link) && Some(&*link.name) != except);
    let removed: Vec<_> = stale.map(|link| remove_device(connection, link)).collect();
    removed.into_iter().collect()
}

/// How many routes of the agent's there are.
///
/// # Errors
/// The routes cannot be listed.
pub(crate) fn routes() -> Result<usize, NetlinkError> {
    Ok(kept_route::all(&mut Connection::open()?, PROTOCOL)?.len())
}

fn remove_routes(connection: &mut Connection) -> Result<(), NetlinkError> {
    for route in kept_route::all(connection, PROTOCOL)? {
        kept_route::take(connection, &route, PROTOCOL)?;
    }
    Ok(())
}

/// Removes the agent's routes and devices; what is left, in words.
pub(crate) fn remove() -> Vec<String> {
    let mut connection = match Connection::open() {
        Ok(connection) => connection,
        Err(error) => return vec![format!("the routes to other nodes: {error}")],
    };
    let done = [remove_routes(&mut connection), remove_devices(&mut connection, None)];
    done.into_iter().filter_map(Result::err).map(|error| error.to_string()).collect()
}
