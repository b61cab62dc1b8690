//! Packets of connections that are translated already.

use super::{TO_NODE, count_end, holder};
use crate::Tables;
use crate::abi::{HandedOn, Port};
use crate::nat::reply::Untranslated;
use crate::nat::rewrite::rewrite;
use crate::nat::segment::Segment;
use crate::nat::{self, alias, fragments, masquerade, segment, snat};
use crate::programs::{BeginPlan, Next};
use crate::stages::{deliver, parse};
use crate::verdict::{Delivery, PassReason, Stop};
use crate::wire::{EtherType, Frame, Packet};

/// Packets of connections that are translated already: the source becomes the node. Leaves what may begin a masqueraded
/// connection to [`plan_begin`], with all that was looked up for it in `plan`.
#[inline(always)]
pub fn reply<'a, P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    tables: &T,
    plan: impl FnOnce() -> Option<&'a mut BeginPlan>,
    HandedOn { port, .. }: &HandedOn,
) -> Next {
    let Ok(frame) = parse::frame(packet) else { return TO_NODE.into() };
    let bytes = packet.length();
    let next = reply_stages(packet, &frame, (here, port), bytes, tables, plan).into();
    count_end(&next, port, here, bytes, tables);
    next
}

#[inline(always)]
fn reply_stages<'a, P: Packet, T: Tables>(
    packet: &mut P,
    frame: &Frame,
    (here, port): (u32, &Port),
    bytes: u32,
    tables: &T,
    plan: impl FnOnce() -> Option<&'a mut BeginPlan>,
) -> Result<Delivery, Next> {
    let segment = segment::read(packet, frame, port.bridge).ok_or(Next::IcmpError)?;
    let may_begin = snat::may_begin(&segment, port);
    let known = nat::reply::becomes(&segment, holder(frame, port, here), may_begin, bytes, tables);
    let (becomes, is_masqueraded) = match known {
        Ok(known) => known,
        Err(Untranslated::Tracked) => return Err(later(Next::Tracked, &segment, frame, port, plan)),
        Err(Untranslated::Unknown) => {
            if alias::answered(packet, &segment, tables) {
                return Ok(Delivery::onward(here));
            }
            return Err(if may_begin {
                later(Next::Begin, &segment, frame, port, plan)
            } else {
                TO_NODE.into()
            });
        }
    };
    deliver::survives(&segment.ip)?;
    // Also of one that will be refused: its later fragments may fit.
    fragments::remember(packet, frame.ether_type == EtherType::IPV4, &segment, &becomes, tables)?;
    // As in the kernel, which masquerades after routing and translates a host port's reply before it.
    let source = if is_masqueraded { segment.key.source } else { becomes.source };
    let ends = (source, becomes.destination);
    let route = deliver::route(packet, (frame.payload, &segment.ip), ends, port.bridge, tables);
    let route = route.map_err(uncut)?;
    if is_masqueraded {
        masquerade::is_same_route(&segment, &becomes, &route, tables)?;
    }
    rewrite(packet, frame.payload, &segment, &becomes);
    Ok(deliver::by(route))
}

/// The end of a packet of a translated connection without a route.
#[inline(always)]
fn uncut(stop: Stop) -> Next {
    match stop {
        Stop::Pass(PassReason::TooBig) => Next::FragNeeded,
        stop => stop.into(),
    }
}

/// What another part decides: what may be the first packet of a masqueraded connection, and a packet of one that the kernel has opened.
#[inline(always)]
fn later<'a>(
    next: Next,
    segment: &Segment,
    frame: &Frame,
    port: &Port,
    plan: impl FnOnce() -> Option<&'a mut BeginPlan>,
) -> Next {
    let Some(plan) = plan() else { return TO_NODE.into() };
    plan.header = frame.payload;
    // Verifier: of the entry only what is needed, the stack is full.
    let Port { slot, affinity, flags, .. } = *port;
    plan.port = Port { slot, affinity, flags, ..Port::default() };
    plan.segment = *segment;
    next
}
