//! reach: may what comes by the kernel's way reach a restricted port?
//!
//! The kernel's bridge takes frames from interfaces that have none of our programs. Two things give such a frame away,
//! whatever its bytes say: the interface that it came in by, which the kernel writes down itself, and where the sender
//! that it names is known to be. Only programs for restricted ports ask.

use crate::Tables;
use crate::abi::{
    PORT_ALONE, PORT_ISOLATED, PORT_SAME_BRIDGE, PORT_STRANGER, PORT_WIRE, Port, PortKey, STATION_HOST,
    STATION_ISOLATED, StationKey,
};
use crate::stages::isolate;
use crate::verdict::{DropReason, Stop};
use crate::wire::Frame;
use crate::wire::packet::Packet;

/// Lets a frame on to `port` if it comes from where its sender is, and that is not kept from the port.
///
/// # Errors
/// Drops what has the source of a known station and another origin, on an isolated port also what an isolated one
/// sent, and what came in by an interface that is neither a container's nor a wire; and what the port's `ingressPolicy`
/// shuts out.
#[inline(always)]
pub fn from_anywhere<P: Packet, T: Tables>(
    packet: &P,
    frame: &Frame,
    port: &Port,
    tables: &T,
) -> Result<(), Stop> {
    let origin = packet.origin();
    // The node itself: what it sends it could as well send some other way.
    if origin == 0 {
        return Ok(());
    }
    let sender = tables.port(&PortKey { ifindex: origin });
    let key = StationKey { bridge: port.bridge, vid: port.vid, mac: frame.source };
    let kept_apart = match tables.station(&key) {
        // Routed by the node, wherever it came in: anywhere but by a port of this very bridge.
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
            isolate::sociable(port)?;
            station.flags & STATION_ISOLATED != 0
        }
        Some(_) => return Err(Stop::Drop(DropReason::Impostor)),
        // Nobody's address: a station behind a container or beyond a wire.
        None => match sender {
            Some(sender) if sender.flags & PORT_WIRE != 0 => false,
            Some(sender) if sender.flags & PORT_STRANGER == 0 => {
                isolate::sociable(port)?;
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
