//! port: what is known of the interface that a program runs on?

use crate::Tables;
use crate::abi::{Port, PortKey};
use crate::verdict::{DropReason, PassReason, Stop};

/// What becomes of a packet on an interface that has no entry in `PORTS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The port was open: no entry, no opinion.
    Pass,
    /// The port was restricted: without its entry nobody knows how, so it is shut.
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
