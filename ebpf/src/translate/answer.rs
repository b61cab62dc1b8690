//! answer: does what a container sends to the node belong to a connection that came in by a port of the node?

use crate::Tables;
use crate::abi::translation::TupleKey;
use crate::parse::{Protocol, Segment};
use crate::translate::connection::{Fate, fate};
use crate::verdict::{PassReason, Stop};

/// What the packet becomes, if it does; its connection has been followed.
///
/// # Errors
/// Passes what is no answer.
#[inline(always)]
pub fn becomes<T: Tables>(segment: &Segment, bytes: u32, tables: &T) -> Result<TupleKey, Stop> {
    let no_answer = Stop::Pass(PassReason::ToHost);
    let now = tables.boot_time();
    let protocol = Protocol(segment.key.protocol);
    let becomes = tables.becomes(&segment.key).ok_or(no_answer)?;
    let mut request = becomes.reversed(becomes.domain);
    let fate = tables.follow(&segment.key, &mut request, bytes, |mine, openers| {
        let fate = fate(protocol, openers, mine, false, now);
        (fate, (fate == Fate::Continues).then(|| mine.after(segment.flags(), now)))
    });
    match fate {
        Some(Fate::Continues) => Ok(becomes),
        _ => Err(no_answer),
    }
}
