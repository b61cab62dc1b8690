//! What pods of the cluster's network would lose: their ways to other nodes, and whoever ends them.

use std::path::Path;

use shunt_agent_api::BridgePort;
use shunt_netlink::NetlinkError;

use super::configurations;
use super::obstacle::Obstacle;
use crate::cluster::{mark, removal};

/// What would end for pods that are there; `conflist` is the configuration that the agent has written.
///
/// # Errors
/// The routes cannot be listed.
pub(super) fn obstacles(
    directory: &Path,
    conflist: &Path,
    ports: &[BridgePort],
) -> Result<Vec<Obstacle>, NetlinkError> {
    let pods = ports.iter().filter(|port| port.key.network == mark::NETWORK).count();
    if pods == 0 {
        return Ok(Vec::new());
    }
    let mut obstacles = Vec::new();
    let routes = removal::routes()?;
    if routes > 0 {
        obstacles.push(Obstacle::Routes { pods, routes });
    }
    if !configurations::are_others(directory, conflist) {
        obstacles.push(Obstacle::LastConfiguration { pods, file: conflist.display().to_string() });
    }
    Ok(obstacles)
}
