//! answer: does what a container sends to the node belong to a connection that came in by a port of the node, or to one of
//! its own that is masqueraded?

use crate::Tables;
use crate::abi::translation::TupleKey;
use crate::abi::{PORT_MASQUERADED, Port};
use crate::nat::connection::{Fate, fate};
use crate::nat::segment::Segment;
use crate::verdict::{PassReason, Stop};
use crate::wire::Protocol;

/// What the packet of the container behind `here` becomes, if it does, and whether it is masqueraded; its connection has been
/// followed.
///
/// # Errors
/// Passes what is of no connection: as one that may begin a masqueraded one, or as one for the node.
#[inline(always)]
pub fn becomes<T: Tables>(
    segment: &Segment,
    (here, port): (u32, &Port),
    bytes: u32,
    tables: &T,
) -> Result<(TupleKey, bool), Stop> {
    let protocol = Protocol(segment.key.protocol);
    let may_begin = port.flags & PORT_MASQUERADED != 0 && protocol != Protocol::SCTP && segment.asks();
    let unknown = Stop::Pass(if may_begin { PassReason::MayBegin } else { PassReason::ToHost });
    let now = tables.boot_time();
    let (becomes, holder) = tables.becomes(&segment.key).ok_or(unknown)?;
    // That of a container which had the address before is none.
    if holder != 0 && holder != here {
        return Err(unknown);
    }
    let asks = holder != 0 && may_begin;
    let mut other = becomes.reversed(becomes.domain);
    let fate = tables.follow(&segment.key, &mut other, bytes, |mine, others| {
        let fate = fate(protocol, others, mine, asks, now);
        (fate, (fate == Fate::Continues).then(|| mine.after(segment.flags(), now)))
    });
    match fate {
        Some(Fate::Continues) => Ok((becomes, holder != 0)),
        _ => Err(unknown),
    }
}
