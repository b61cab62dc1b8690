//! masquerade: what holds for every packet of a masqueraded connection. [`super::snat`] begins one.

use crate::Tables;
use crate::abi::AddressKey;
use crate::abi::translation::TupleKey;
use crate::nat::connection::{Fate, fate};
use crate::nat::segment::Segment;
use crate::tables::{Followed, Route};
use crate::verdict::{DropReason, PassReason, Stop};
use crate::wire::Protocol;

/// Lets a packet of a masqueraded connection on if the node still has the connection's address where it leaves.
///
/// # Errors
/// Drops a packet that leaves by an interface without that address: then the connection is over.
#[inline(always)]
pub fn is_same_route<T: Tables>(
    segment: &Segment,
    becomes: &TupleKey,
    route: &Route,
    tables: &T,
) -> Result<(), Stop> {
    if tables.outlet(&AddressKey::new(route.ifindex, 0, becomes.source)).is_some() {
        return Ok(());
    }
    tables.forget_flow(&segment.key);
    Err(Stop::Drop(DropReason::Rerouted))
}

/// Updates the connection that a packet returns to.
///
/// # Errors
/// Passes a packet of a connection that is over.
#[inline(always)]
pub fn follow<T: Tables>(segment: &Segment, becomes: &TupleKey, bytes: u32, tables: &T) -> Result<(), Stop> {
    let now = tables.boot_time();
    let protocol = Protocol(segment.key.protocol);
    let mut opener = becomes.reversed(becomes.domain);
    let packet = Followed { bytes, step: segment.step(), now };
    let fate = tables.follow(&segment.key, &mut opener, Some(&packet), |mine, openers| {
        fate(protocol, openers, mine, false, now)
    });
    match fate {
        Some(Fate::Continues) => Ok(()),
        _ => Err(Stop::Pass(PassReason::Stray)),
    }
}
