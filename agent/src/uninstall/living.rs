//! Which recorded ports are there: containers end also while no agent runs, and their records stay until the next one starts.

use std::collections::BTreeSet;

use shunt_agent_api::BridgePort;
use shunt_netlink::link::links;
use shunt_netlink::{Connection, NetlinkError};

/// The ports whose host end is still the recorded link.
///
/// # Errors
/// The links cannot be listed.
pub(super) fn living(ports: Vec<BridgePort>) -> Result<Vec<BridgePort>, NetlinkError> {
    let links = Connection::open()?.list(links())?;
    let there: BTreeSet<_> = links.iter().map(|link| (link.index, &*link.name)).collect();
    Ok(ports.into_iter().filter(|port| there.contains(&(port.host.index, &*port.host.name))).collect())
}
