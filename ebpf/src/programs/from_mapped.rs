//! mapped: which frames may be answers to what came in by a port of the node, or of masqueraded connections?
//!
//! `from_container` asks, of the port's entry that it has anyway, and leaves them uncounted to the kernel's next program,
//! `from_mapped`, which is there on ports that have either. So other ports and other frames pay nothing, and
//! neither program is too much for the verifier.

use crate::abi::{PORT_MAPPED, PORT_MASQUERADED, PORT_SHARED, Port, Station};
use crate::stages::port::Missing;
use crate::stages::{find, guard, mac_filter, port};
use crate::verdict::{PassReason, Stop};
use crate::wire::Frame;
use crate::wire::packet::Packet;
use crate::{Tables, journey, wire};

/// What `find` said, but for a frame that may be an answer.
///
/// # Errors
/// `find`'s own; passes what `from_mapped` is to look at.
#[inline(always)]
pub fn unless_answer(found: Result<Station, Stop>, port: &Port) -> Result<Station, Stop> {
    match found {
        Err(Stop::Pass(PassReason::ToHost)) if port.flags & (PORT_MAPPED | PORT_MASQUERADED) != 0 => {
            Err(Stop::Pass(PassReason::MayAnswer))
        }
        found => found,
    }
}

/// A frame that may be an answer, and its port's entry.
///
/// # Errors
/// Passes everything else; drops what has no Ethernet header, and what a restricted port's program has not seen.
#[inline(always)]
pub fn arrival<P: Packet, T: Tables>(packet: &P, here: u32, tables: &T) -> Result<(Frame, Port), Stop> {
    let port = port::entry(here, Missing::Pass, tables)?;
    guard::behind(packet, &port)?;
    let frame = wire::frame(packet).map_err(journey::truncated)?;
    may_answer(&frame, &port, here, tables)?;
    Ok((frame, port))
}

/// Whether this is a frame that [`unless_answer`] left, or one on a shared port that it would have left: other people's
/// filters cannot translate an answer.
///
/// # Errors
/// Passes everything else.
#[inline(always)]
fn may_answer<T: Tables>(frame: &Frame, port: &Port, here: u32, tables: &T) -> Result<(), Stop> {
    mac_filter::source(frame, port)?;
    match unless_answer(find::station(frame, port, here, tables), port) {
        Err(Stop::Pass(PassReason::MayAnswer)) => Ok(()),
        Err(stop) => Err(stop),
        Ok(_) => Err(Stop::Pass(if port.flags & PORT_SHARED != 0 {
            PassReason::Shared
        } else {
            PassReason::KernelFlow
        })),
    }
}
