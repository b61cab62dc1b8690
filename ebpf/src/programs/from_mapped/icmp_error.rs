//! The container's ICMP errors about packets of translated connections.

use super::{TO_NODE, count_end, holder};
use crate::Tables;
use crate::abi::{HandedOn, NO_SLOT, PORT_SHARED, Port};
use crate::nat::{embedded, icmp_error};
use crate::programs::{IcmpErrorPlan, Next};
use crate::stages::{deliver, parse};
use crate::tables::{Lane, Route};
use crate::verdict::{Delivery, Stop, Verdict, Way};
use crate::wire::{Frame, Packet};

/// ICMP errors about packets that came in by a port of the node: decides. [`Next::IcmpError`] where the plan is to be done.
#[inline(always)]
pub fn plan_icmp_error<'a, P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    tables: &T,
    plan: impl FnOnce() -> Option<&'a mut IcmpErrorPlan>,
    HandedOn { port, .. }: &HandedOn,
) -> Next {
    let Some(plan) = plan() else { return TO_NODE.into() };
    let Ok(frame) = parse::frame(packet) else { return TO_NODE.into() };
    match plan_icmp_error_stages(packet, &frame, (here, port), tables, plan) {
        Ok(()) => Next::IcmpError,
        Err(stop) => {
            let next = stop.into();
            count_end(&next, port, here, packet.length(), tables);
            next
        }
    }
}

#[inline(always)]
fn plan_icmp_error_stages<P: Packet, T: Tables>(
    packet: &mut P,
    frame: &Frame,
    (here, port): (u32, &Port),
    tables: &T,
    plan: &mut IcmpErrorPlan,
) -> Result<(), Stop> {
    // Verifier: before the rest, or the frame's addresses stay on the stack, which is full.
    let holds = holder(frame, port, here);
    plan.error = embedded::read(packet, frame, port.bridge).ok_or(TO_NODE)?;
    let (becomes, held) = icmp_error::becomes(&plan.error, tables).ok_or(TO_NODE)?;
    plan.becomes = becomes;
    // Errors of hosts behind the container, or of the container that had its address before, are not translated.
    if !plan.error.ip.source.is(plan.error.key.source) || (held != 0 && held != holds) {
        return Err(TO_NODE);
    }
    deliver::survives(&plan.error.ip)?;
    plan.source = plan.becomes.source;
    let source = if held == 0 { plan.becomes.source } else { plan.error.key.source };
    let ends = (source, plan.becomes.destination);
    plan.route = deliver::route(packet, (frame.payload, &plan.error.ip), ends, port.bridge, tables)?;
    plan.slot = if port.flags & PORT_SHARED == 0 { port.slot } else { NO_SLOT };
    Ok(())
}

/// Does what [`plan_icmp_error`] has planned.
#[inline(always)]
pub fn rewrite_icmp_error<P: Packet, T: Tables>(
    packet: &mut P,
    _here: u32,
    tables: &T,
    plan: &IcmpErrorPlan,
) -> Next {
    let bytes = packet.length();
    icmp_error::rewrite(packet, &plan.error, plan.source, &plan.becomes);
    if plan.slot != NO_SLOT {
        tables.count(plan.slot, Lane::FromFast, bytes);
    }
    let Route { ifindex, next_hop } = plan.route;
    Verdict::Deliver(Delivery { ifindex, slot: NO_SLOT, way: Way::Neighbor(next_hop) }).into()
}
