//! port: the `PORTS` entry of the interface that a program runs on.

use crate::Tables;
use crate::abi::{PORT_AWAY, PORT_SHARED, Port, PortKey};
use crate::verdict::{DropReason, PassReason, Stop};

/// What becomes of a packet on an interface without an entry in `PORTS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The port is open: no entry, no opinion.
    Pass,
    /// The port is restricted. Fails closed: without an entry the restrictions are unknown.
    Drop,
}

/// The entry of the interface `here`.
///
/// # Errors
/// What `missing` says.
#[inline(always)]
pub fn entry<T: Tables>(here: u32, missing: Missing, tables: &T) -> Result<Port, Stop> {
    tables.port(&PortKey { ifindex: here }).ok_or(match missing {
        Missing::Pass => Stop::Pass(PassReason::NoPort),
        Missing::Drop => Stop::Drop(DropReason::NoPort),
    })
}

/// Lets a frame on if no other programs filter on its interface.
///
/// # Errors
/// Passes a frame that other filters have to see: a verdict of ours would skip them. Passes one that the kernel's bridge has to hear,
/// because the station was heard elsewhere.
#[inline(always)]
pub fn not_shared(port: &Port) -> Result<(), Stop> {
    // One test for both, so that it costs nothing where neither is.
    if port.flags & (PORT_SHARED | PORT_AWAY) != 0 {
        let is_shared = port.flags & PORT_SHARED != 0;
        return Err(Stop::Pass(if is_shared { PassReason::Shared } else { PassReason::Away }));
    }
    Ok(())
}
