//! reverse path: whether the kernel would take a packet from its source at the interface that it came in by
//! (`fib_validate_source`; RFC 3704). Asked of what opens a connection, of IPv4 only, and where `rp_filter` says so.

use crate::Tables;
use crate::abi::translation::TupleKey;
use crate::abi::{PortKey, REVERSE_PATH_LOOSE, REVERSE_PATH_NONE};
use crate::tables::RouteQuery;
use crate::verdict::{PassReason, Stop};

/// The kernel looks up the way back as if the packet were its own (`LOOPBACK_IFINDEX`, include/net/flow.h).
const LOOPBACK: u32 = 1;

/// Bytes of the packet that the route is looked up for: such a one fits every link.
const SMALLEST: u16 = 20;

/// # Errors
/// Passes what the kernel drops there.
#[inline(always)]
pub fn check<T: Tables>(key: &TupleKey, here: u32, tables: &T) -> Result<(), Stop> {
    if !key.source.is_v4() {
        return Ok(());
    }
    let Some(filtered) = tables.reverse_path(&PortKey { ifindex: here }) else { return Ok(()) };
    if filtered.filter == REVERSE_PATH_NONE {
        return Ok(());
    }
    let mismatch = Stop::Pass(PassReason::ReversePath);
    let query =
        RouteQuery { from: LOOPBACK, source: key.destination, destination: key.source, bytes: SMALLEST };
    let back = tables.route(&query).map_err(|_| mismatch)?;
    if back.ifindex == here || filtered.filter == REVERSE_PATH_LOOSE {
        return Ok(());
    }
    // One hop was chosen of a multipath route: the others are no mismatch. A route on the link has no hops.
    let chosen = tables.reverse_path(&PortKey { ifindex: back.ifindex }).map_or(0, |other| other.group);
    let is_other_hop = chosen != 0 && chosen == filtered.group && !back.next_hop.is(key.source);
    if is_other_hop { Ok(()) } else { Err(mismatch) }
}
