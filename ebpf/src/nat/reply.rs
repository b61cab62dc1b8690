//! reply: a container's packet of a connection that is translated already: one to a host port, or a masqueraded one.

use crate::Tables;
use crate::abi::translation::TupleKey;
use crate::nat::connection::{Fate, fate};
use crate::nat::segment::Segment;
use crate::tables::Followed;
use crate::wire::Protocol;

/// The translated tuple of a packet from the container behind `here`, and whether its connection is masqueraded; updates the
/// connection. None for a packet of no connection. `may_begin` says whether the packet may begin a masqueraded one.
#[inline(always)]
pub fn becomes<T: Tables>(
    segment: &Segment,
    here: u32,
    may_begin: bool,
    bytes: u32,
    tables: &T,
) -> Option<(TupleKey, bool)> {
    let protocol = Protocol(segment.key.protocol);
    let now = tables.boot_time();
    let (becomes, holder) = tables.becomes(&segment.key)?;
    // The connection of a container that had the address before.
    if holder != 0 && holder != here {
        return None;
    }
    let asks = holder != 0 && may_begin;
    let mut other = becomes.reversed(becomes.domain);
    let packet = Followed { bytes, step: segment.step(), now };
    let fate = tables.follow(&segment.key, &mut other, Some(&packet), |mine, others| {
        fate(protocol, others, mine, asks, now)
    });
    match fate {
        Some(Fate::Continues) => Some((becomes, holder != 0)),
        _ => None,
    }
}
