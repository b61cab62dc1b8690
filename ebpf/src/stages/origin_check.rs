//! origin check: whether a frame that arrives by the kernel's path may reach a restricted port. Reports call the stage
//! `reach`.
//!
//! The kernel's bridge takes frames from interfaces that have none of our programs. Two facts tell where such a frame comes from,
//! whatever its bytes say: the interface that it came in by, which the kernel records, and the place in the FDB of its source
//! address.

use crate::Tables;
use crate::abi::{
    PORT_ALONE, PORT_FOREIGN, PORT_ISOLATED, PORT_SAME_BRIDGE, PORT_WIRE, Port, PortKey, STATION_HOST,
    STATION_ISOLATED, STATION_MOVED, StationKey,
};
use crate::stages::isolate;
use crate::verdict::{DropReason, Stop};
use crate::wire::Frame;
use crate::wire::packet::Packet;

/// Lets a frame on to `port` if its source address belongs where it came in, and may reach the port.
///
/// # Errors
/// Drops a frame with a known station's source address and another origin, and what the port's `ingressPolicy` forbids. On an
/// isolated port it also drops frames of isolated ports, and frames from an interface that is neither a container's nor an
/// uplink.
#[inline(always)]
pub fn check<P: Packet, T: Tables>(packet: &P, frame: &Frame, port: &Port, tables: &T) -> Result<(), Stop> {
    let origin = packet.origin();
    // The node's own: it could send by any path.
    if origin == 0 {
        return Ok(());
    }
    let sender = tables.port(&PortKey { ifindex: origin });
    let key = StationKey { bridge: port.bridge, vid: port.vid, mac: frame.source };
    let station = tables.station(&key).filter(|station| station.flags & STATION_MOVED == 0);
    let kept_apart = match station {
        // Routed by the node: it came in anywhere but on a port of this bridge.
        Some(station) if station.flags & STATION_HOST != 0 => {
            if origin != port.bridge && sender.is_some_and(|sender| sender.bridge == port.bridge) {
                return Err(Stop::Drop(DropReason::Impostor));
            }
            let is_from_another =
                origin != port.bridge && sender.is_some_and(|sender| sender.bridge == origin);
            return if port.flags & PORT_SAME_BRIDGE != 0 && is_from_another {
                Err(Stop::Drop(DropReason::IngressPolicy))
            } else {
                Ok(())
            };
        }
        Some(station) if station.ifindex == origin => {
            isolate::not_alone(port)?;
            station.flags & STATION_ISOLATED != 0
        }
        Some(_) => return Err(Stop::Drop(DropReason::Impostor)),
        // An unknown address: a station behind a container or beyond an uplink.
        None => match sender {
            Some(sender) if sender.flags & PORT_WIRE != 0 => false,
            Some(sender) if sender.flags & PORT_FOREIGN == 0 => {
                isolate::not_alone(port)?;
                sender.flags & PORT_ISOLATED != 0
            }
            _ if port.flags & (PORT_ISOLATED | PORT_ALONE) != 0 => {
                return Err(Stop::Drop(DropReason::Stranger));
            }
            _ => false,
        },
    };
    if kept_apart && port.flags & PORT_ISOLATED != 0 {
        return Err(Stop::Drop(DropReason::Isolated));
    }
    Ok(())
}
