//! reply: a container's packet of a connection that is translated already: one to a host port, or a masqueraded one.

use crate::Tables;
use crate::abi::translation::{TupleKey, is_tracked};
use crate::nat::connection::{Fate, fate};
use crate::nat::segment::Segment;
use crate::tables::Followed;
use crate::wire::Protocol;

/// Why a packet is not translated here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untranslated {
    /// It is of no connection.
    Unknown,
    /// The kernel has opened its connection.
    Tracked,
}

/// The translated tuple of a packet from the container behind `here`, and whether its connection is masqueraded; updates the
/// connection. `may_begin` says whether the packet may begin a masqueraded one.
///
/// # Errors
/// [`Untranslated`].
#[inline(always)]
pub fn becomes<T: Tables>(
    segment: &Segment,
    here: u32,
    may_begin: bool,
    bytes: u32,
    tables: &T,
) -> Result<(TupleKey, bool), Untranslated> {
    let protocol = Protocol(segment.key.protocol);
    let now = tables.boot_time();
    let (becomes, holder) = tables.becomes(&segment.key).ok_or(Untranslated::Unknown)?;
    if is_tracked(holder) {
        return Err(Untranslated::Tracked);
    }
    // The connection of a container that had the address before.
    if holder != 0 && holder != here {
        return Err(Untranslated::Unknown);
    }
    let asks = holder != 0 && may_begin;
    let mut other = becomes.reversed(becomes.domain);
    let packet = Followed { bytes, step: segment.step(), now };
    let fate = tables.follow(&segment.key, &mut other, Some(&packet), |mine, others| {
        fate(protocol, others, mine, asks, now)
    });
    match fate {
        Some(Fate::Continues) => Ok((becomes, holder != 0)),
        _ => Err(Untranslated::Unknown),
    }
}
