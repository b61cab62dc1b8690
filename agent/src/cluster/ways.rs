//! Ways to the pods of other nodes: by a plain route where the node is on a link of this one, else through the VXLAN device.
//!
//! Everything is compared with what there is, and only what differs is changed: what somebody has deleted is there again, what is no
//! longer wanted is gone, and what others have made stays.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use shunt_netlink::kept_route::KeptRoute;
use shunt_netlink::route::{NextHop, next_hop_of_node};
use shunt_netlink::{Connection, NetlinkError};

use super::hop::Hop;
use super::plan::Plan;
use super::removal::remove_devices;
use super::tunnel::{Far, Tunnel};
use super::{mtu::PodsMtu, routes};
use crate::config::{ClusterOptions, Routes};

/// What has become of the ways.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// What could not be done, in words.
    pub(crate) warnings: Vec<String>,
    /// The MTU that pods are to have.
    pub(crate) mtu: PodsMtu,
}

/// How a node is reached.
enum Way {
    /// Out of this interface, to its own address.
    Link(u32, IpAddr),
    /// Encapsulated, to this address.
    Tunnel(IpAddr),
}

/// Has exactly these ways; `is_first` the first time in the agent's life.
///
/// # Errors
/// The kernel's tables cannot be read.
pub(crate) fn keep(options: &ClusterOptions, plan: &Plan, is_first: bool) -> Result<Kept, NetlinkError> {
    let mut connection = Connection::open()?;
    let mut kept = Kept::default();
    let (mut wanted, mut far) = (BTreeMap::new(), Vec::new());
    // Pods of nodes that cannot be reached now. What leads there stays: without it their packets would leave by the default route.
    let mut undecided = BTreeSet::new();
    for hop in &plan.hops {
        match way(&mut connection, options.routes, hop) {
            Ok(Way::Link(index, gateway)) => {
                let route = KeptRoute { destination: hop.pods, gateway, index, on_link: false };
                wanted.insert(hop.pods, route);
            }
            Ok(Way::Tunnel(remote)) => far.push(Far { pods: hop.pods, remote }),
            Err(why) => {
                kept.warnings.push(format!("no way to the pods in {}: {why}", hop.pods));
                undecided.extend(why.is_passing().then_some(hop.pods));
            }
        }
    }
    if is_first {
        let stale = remove_devices(&mut connection, Some(&options.vxlan.device));
        kept.warnings.extend(stale.err().map(|error| error.to_string()));
    }
    let tunnel = if options.routes == Routes::Vxlan || !far.is_empty() {
        Tunnel::keep(&mut connection, &options.vxlan, plan, &far)?
    } else if undecided.is_empty() {
        Tunnel::none(&mut connection, &options.vxlan)?
    } else {
        Tunnel::default()
    };
    undecided.extend(tunnel.undecided);
    wanted.extend(tunnel.routes.iter().map(|route| (route.destination, *route)));
    kept.warnings.extend(tunnel.warnings);
    kept.warnings.extend(routes::keep(&mut connection, &wanted, &undecided)?);
    // Nothing leads there any more.
    let forgotten = tunnel.stale.into_iter().map(|stale| connection.run(stale));
    kept.warnings
        .extend(forgotten.filter_map(Result::err).filter(|e| !e.is_missing()).map(|e| e.to_string()));
    kept.mtu = tunnel.mtu;
    Ok(kept)
}

fn way(connection: &mut Connection, routes: Routes, hop: &Hop) -> Result<Way, Beyond> {
    let plain = match hop.node {
        Some(node) if routes != Routes::Vxlan => match on_link(connection, node) {
            Ok(index) => return Ok(Way::Link(index, node)),
            Err(Beyond::Router(_, gateway)) if routes == Routes::Auto => {
                format!("the node {node} is not on the link but behind {gateway}")
            }
            Err(why) => return Err(why),
        },
        _ => "the node has no InternalIP of their family".to_owned(),
    };
    let Some(remote) = hop.tunnel.filter(|_| routes != Routes::Host) else {
        return Err(Beyond::Family(plain));
    };
    match on_link(connection, remote) {
        Ok(_) | Err(Beyond::Router(..)) => Ok(Way::Tunnel(remote)),
        Err(why) => Err(why),
    }
}

/// Why a node is not reached, or on no link.
#[derive(Debug, thiserror::Error)]
enum Beyond {
    #[error("the node's address {0} is this node's own")]
    Own(IpAddr),
    #[error(
        "the node {0} is not on the link but behind {1}: set routes = \"auto\", or have that router lead there and set routes = \"off\""
    )]
    Router(IpAddr, IpAddr),
    #[error("{0}, and its first InternalIP is of another family than this node's first one")]
    Family(String),
    #[error("the node {0} cannot be reached")]
    Nowhere(IpAddr),
    #[error("the node {0} cannot be reached: {1}")]
    Unknown(IpAddr, NetlinkError),
}

impl Beyond {
    /// Whether the network may have a way again at any moment.
    fn is_passing(&self) -> bool {
        matches!(self, Self::Nowhere(_) | Self::Unknown(..))
    }
}

/// The interface on whose link a node is.
fn on_link(connection: &mut Connection, node: IpAddr) -> Result<u32, Beyond> {
    match connection.get(next_hop_of_node(node)) {
        Ok(Some(NextHop { is_local: true, .. })) => Err(Beyond::Own(node)),
        Ok(Some(NextHop { gateway: None, index, .. })) => Ok(index),
        Ok(Some(NextHop { gateway: Some(gateway), .. })) => Err(Beyond::Router(node, gateway)),
        Ok(None) => Err(Beyond::Nowhere(node)),
        Err(error) => Err(Beyond::Unknown(node, error)),
    }
}
