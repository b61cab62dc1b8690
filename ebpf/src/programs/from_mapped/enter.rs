//! Whether a frame is one to translate.

use super::TO_NODE;
use crate::Tables;
use crate::abi::{
    HandedOn, PORT_ANSWERS_NEIGHBORS, PORT_BLOCKED, PORT_MAPPED, PORT_MASQUERADED, PORT_SHARED, Port, Station,
};
use crate::programs::Next;
use crate::stages::port::Missing;
use crate::stages::{count, find, guard, mac_filter, parse, port};
use crate::verdict::{PassReason, Stop};
use crate::wire::Packet;

/// From another MAC address than the container's.
const FOREIGN: Stop = Stop::Pass(PassReason::ForeignSource);

/// A frame from the port `here` to the node. Most were judged by `from_container`, which has handed the port's entry on; of others the
/// entry is looked up, and put in the same place for the parts that translate.
#[inline(always)]
pub fn enter<'a, P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    tables: &T,
    handed: impl FnOnce() -> Option<&'a mut HandedOn>,
) -> Next {
    let Some(handed) = handed() else { return TO_NODE.into() };
    let judged = if handed.ifindex == here {
        guard::marked(packet, &handed.port)
    } else {
        judge(packet, here, tables).map(|port| handed.port = port)
    };
    // It is this packet's.
    handed.ifindex = 0;
    match judged {
        Ok(()) => Next::Translate,
        Err(stop) => count::unknown(stop, here, packet.length(), tables).into(),
    }
}

/// The entry of the port of a frame that `from_container` has left to this program without handing it on, or on a
/// shared port of one that it would have left, for other programs' filters cannot translate a reply. A container that has changed its MAC
/// address goes on replying.
///
/// # Errors
/// Passes everything else, and what the kernel's bridge drops as the port does not forward; drops a frame without an Ethernet header, and one that a restricted port's program has not marked.
#[inline(always)]
fn judge<P: Packet, T: Tables>(packet: &P, here: u32, tables: &T) -> Result<Port, Stop> {
    let mut port = port::entry(here, Missing::Pass, tables)?;
    guard::marked(packet, &port)?;
    if port.flags & PORT_BLOCKED != 0 {
        return Err(Stop::Pass(PassReason::Blocked));
    }
    let frame = parse::frame(packet)?;
    let has_moved = match mac_filter::check(&frame, &port) {
        Ok(()) => false,
        Err(FOREIGN) if port.flags & PORT_MAPPED != 0 => true,
        Err(stop) => return Err(stop),
    };
    // Verifier: one call for both.
    match find::station(&frame, &port, here, tables) {
        Err(TO_NODE) if has_moved => {
            // `from_container` has passed and counted it.
            port.flags = port.flags & !PORT_MASQUERADED | PORT_SHARED;
            Ok(port)
        }
        _ if has_moved => Err(FOREIGN),
        Err(TO_NODE) if port.flags & (PORT_MAPPED | PORT_MASQUERADED) != 0 => Ok(port),
        found if port.flags & PORT_ANSWERS_NEIGHBORS != 0 && may_be_neighbor(&found) => {
            port.flags &= !PORT_MASQUERADED;
            Ok(port)
        }
        Err(stop) => Err(stop),
        Ok(_) if port.flags & PORT_SHARED != 0 => Err(Stop::Pass(PassReason::Shared)),
        Ok(_) => Err(Stop::Pass(PassReason::KernelFlow)),
    }
}

/// Whether a frame is for somebody on the container's link whom it may answer directly.
#[inline(always)]
const fn may_be_neighbor(found: &Result<Station, Stop>) -> bool {
    matches!(found, Ok(_) | Err(Stop::Pass(PassReason::UnknownStation)))
}
