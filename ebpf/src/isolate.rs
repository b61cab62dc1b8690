//! isolate: may these two ports talk?

use crate::abi::{PORT_ISOLATED, Port, STATION_ISOLATED, Station};
use crate::verdict::{DropReason, Stop};

/// Lets a frame from `port` go to `station` unless both are isolated.
///
/// # Errors
/// Drops between isolated ports. What the kernel floods between them its own isolated flag holds back.
#[inline(always)]
pub fn apart(port: &Port, station: &Station) -> Result<(), Stop> {
    if port.flags & PORT_ISOLATED != 0 && station.flags & STATION_ISOLATED != 0 {
        return Err(Stop::Drop(DropReason::Isolated));
    }
    Ok(())
}
