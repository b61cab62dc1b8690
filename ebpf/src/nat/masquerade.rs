//! masquerade: what holds for every packet of a masqueraded connection. [`super::snat`] begins one.

use crate::Tables;
use crate::abi::PortKey;
use crate::abi::translation::TupleKey;
use crate::nat::connection::{Fate, fate};
use crate::nat::segment::Segment;
use crate::tables::Route;
use crate::verdict::{DropReason, PassReason, Stop};
use crate::wire::{Frame, Packet, Protocol};

/// The route of a packet of a masqueraded connection, if the node still has the connection's address there.
///
/// # Errors
/// Passes a packet without a route, so that the kernel reports it. Drops a packet that the kernel would fragment and masquerade itself,
/// and one that leaves by an interface with another address: then the connection is over.
#[inline(always)]
pub fn same_route<P: Packet, T: Tables>(
    packet: &P,
    frame: &Frame,
    segment: &Segment,
    becomes: &TupleKey,
    route: Result<Route, Stop>,
    tables: &T,
) -> Result<Route, Stop> {
    let Ok(route) = route else {
        return Err(if is_fragmentable(packet, frame, segment) {
            Stop::Drop(DropReason::Uncut)
        } else {
            Stop::Pass(PassReason::NoRoute)
        });
    };
    let outlet = tables.outlet(&PortKey { ifindex: route.ifindex });
    if outlet.is_some_and(|outlet| outlet.address(becomes.source).is(becomes.source)) {
        return Ok(route);
    }
    tables.forget_flow(&segment.key);
    Err(Stop::Drop(DropReason::Rerouted))
}

/// Whether routers fragment the packet where it is too large: IPv4 without "don't fragment" (RFC 791).
#[inline(always)]
fn is_fragmentable<P: Packet>(packet: &P, frame: &Frame, segment: &Segment) -> bool {
    const FLAGS: u32 = 6;
    const DONT_FRAGMENT: u16 = 0x4000;
    let flags: Option<u16> = packet.load(frame.payload + FLAGS);
    segment.ip.source.is_v4() && flags.is_some_and(|flags| u16::from_be(flags) & DONT_FRAGMENT == 0)
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
    let fate = tables.follow(&segment.key, &mut opener, bytes, |mine, openers| {
        let fate = fate(protocol, openers, mine, false, now);
        (fate, (fate == Fate::Continues).then(|| mine.after(segment.flags(), now)))
    });
    match fate {
        Some(Fate::Continues) => Ok(()),
        _ => Err(Stop::Pass(PassReason::Stray)),
    }
}
