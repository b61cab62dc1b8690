//! isolate: may these two ports talk?
//!
//! Two keys of the configuration say so. `portIsolation` keeps isolated ports apart from each other. `ingressPolicy` keeps
//! a container apart from those of other bridges, or from every container, whatever those are.

use crate::Tables;
use crate::abi::{
    PORT_ALONE, PORT_ISOLATED, Port, PortKey, STATION_ALONE, STATION_ISOLATED, STATION_SAME_BRIDGE,
    STATION_WIRE, Station,
};
use crate::verdict::{DropReason, Stop};

/// Lets a frame from `port` go to `station` unless both are isolated, or the port is to reach no container. That the station
/// is to be reached by none is for [`crate::stages::deliver`], where it costs open ports nothing.
///
/// # Errors
/// Drops between isolated ports, and from a port that reaches no container. What the kernel floods between isolated ports
/// its own flag holds back.
#[inline(always)]
pub fn apart(port: &Port, station: &Station) -> Result<(), Stop> {
    // One test for both, so that it costs nothing where neither is.
    if port.flags & (PORT_ISOLATED | PORT_ALONE) != 0 {
        if station.flags & STATION_WIRE == 0 {
            sociable(port)?;
        }
        if port.flags & PORT_ISOLATED != 0 && station.flags & STATION_ISOLATED != 0 {
            return Err(Stop::Drop(DropReason::Isolated));
        }
    }
    Ok(())
}

/// Lets a port and a container meet unless the port is to meet none.
///
/// # Errors
/// Drops where it is.
#[inline(always)]
pub fn sociable(port: &Port) -> Result<(), Stop> {
    if port.flags & PORT_ALONE != 0 {
        return Err(Stop::Drop(DropReason::IngressPolicy));
    }
    Ok(())
}

/// Lets what the node routes go to `station`, on the bridge `bridge`, unless it came by a bridge that the station takes
/// nothing from. `origin` is where it came into the node; 0 for what the node sends, or what came from outside. What
/// comes by a host port from the station's own bridge comes from a container, and not from the node.
///
/// # Errors
/// Drops what came by another bridge, and by any bridge to a container that no container reaches.
#[inline(always)]
pub fn routed<T: Tables>(origin: u32, bridge: u32, station: &Station, tables: &T) -> Result<(), Stop> {
    if station.flags & STATION_SAME_BRIDGE == 0 || origin == 0 {
        return Ok(());
    }
    if origin == bridge && station.flags & STATION_ALONE == 0 {
        return Ok(());
    }
    if is_bridge(origin, tables) {
        return Err(Stop::Drop(DropReason::IngressPolicy));
    }
    Ok(())
}

/// Whether an interface is one of our bridges.
#[inline(always)]
pub fn is_bridge<T: Tables>(ifindex: u32, tables: &T) -> bool {
    tables.port(&PortKey { ifindex }).is_some_and(|port| port.bridge == ifindex)
}
