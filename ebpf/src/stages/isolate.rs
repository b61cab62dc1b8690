//! isolate: whether two ports may talk.
//!
//! Two configuration keys decide. `portIsolation` separates isolated ports from each other. `ingressPolicy` separates a
//! container from containers on other bridges (`same-bridge`), or from every container (`isolated`).

use crate::Tables;
use crate::abi::{
    PORT_ALONE, PORT_ISOLATED, Port, PortKey, STATION_ALONE, STATION_BLOCKED, STATION_ISOLATED,
    STATION_SAME_BRIDGE, STATION_WIRE, Station,
};
use crate::stages::deliver;
use crate::verdict::{DropReason, Stop};

/// Lets a frame from `port` go to `station` unless both are isolated, or the port may reach no container. Whether the station
/// may be reached by none is checked in [`crate::stages::deliver`], where it costs open ports nothing.
///
/// # Errors
/// Drops between isolated ports, and from a port that may reach no container. The kernel's own flag stops what the kernel
/// floods between isolated ports.
#[inline(always)]
pub fn ports(port: &Port, station: &Station) -> Result<(), Stop> {
    // One test for both, so that it costs nothing where neither is.
    if port.flags & (PORT_ISOLATED | PORT_ALONE) != 0 {
        if station.flags & STATION_WIRE == 0 {
            not_alone(port)?;
        }
        if port.flags & PORT_ISOLATED != 0 && station.flags & STATION_ISOLATED != 0 {
            return Err(Stop::Drop(DropReason::Isolated));
        }
    }
    Ok(())
}

/// Lets a frame between `port` and a container on unless the port may talk to none.
///
/// # Errors
/// Drops where the port's `ingressPolicy` is `isolated`.
#[inline(always)]
pub fn not_alone(port: &Port) -> Result<(), Stop> {
    if port.flags & PORT_ALONE != 0 {
        return Err(Stop::Drop(DropReason::IngressPolicy));
    }
    Ok(())
}

/// Lets what the node routes go to `station`, on the bridge `bridge`, unless the station's `ingressPolicy` forbids its origin.
/// `origin` is the interface by which it came into the node; 0 for what the node sends, or what came from outside. What
/// comes to a host port from the station's own bridge comes from a container.
///
/// # Errors
/// Drops what came by another bridge, and what came by any bridge to a container that no container may reach.
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

/// The same of a translated packet, which the station's bridge will not see.
///
/// # Errors
/// Drops also what is for a port that does not forward.
#[inline(always)]
pub fn translated<T: Tables>(origin: u32, bridge: u32, station: &Station, tables: &T) -> Result<(), Stop> {
    // One test for both, so that it costs nothing where neither is.
    if station.flags & (STATION_SAME_BRIDGE | STATION_BLOCKED) == 0 {
        return Ok(());
    }
    deliver::forwards(station)?;
    routed(origin, bridge, station, tables)
}

/// Whether an interface is one of our bridges.
#[inline(always)]
pub fn is_bridge<T: Tables>(ifindex: u32, tables: &T) -> bool {
    tables.port(&PortKey { ifindex }).is_some_and(|port| port.bridge == ifindex)
}
