//! The first packet of a masqueraded connection.

use super::{TO_NODE, count_end};
use crate::Tables;
use crate::abi::{AFFINITY_FAST, PORT_SHARED};
use crate::nat::rewrite::rewrite;
use crate::nat::{fragments, snat};
use crate::programs::{BeginPlan, Next};
use crate::stages::{deliver, flow_affinity, incoming};
use crate::tables::Lane;
use crate::verdict::{PassReason, Stop, Verdict};
use crate::wire::{Packet, Protocol};

/// A masqueraded connection's first packet: decides, and makes both entries. [`Next::Begin`] where the plan is to be done.
#[inline(always)]
pub fn plan_begin<'a, P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    tables: &T,
    plan: impl FnOnce() -> Option<&'a mut BeginPlan>,
) -> Next {
    let Some(plan) = plan() else { return TO_NODE.into() };
    match plan_begin_stages(packet, here, tables, plan) {
        Ok(()) => Next::Begin,
        Err(stop) => {
            let next = stop.into();
            count_end(&next, &plan.port, here, packet.length(), tables);
            next
        }
    }
}

#[inline(always)]
fn plan_begin_stages<P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    tables: &T,
    plan: &mut BeginPlan,
) -> Result<(), Stop> {
    // Other filters on the interface would not see it.
    if plan.port.flags & PORT_SHARED != 0 {
        return Err(Stop::Pass(PassReason::Shared));
    }
    let key = plan.segment.key;
    snat::leaves(&key, here, tables)?;
    if plan.port.affinity != AFFINITY_FAST {
        let is_kernels = |_| Stop::Pass(PassReason::KernelHeld);
        flow_affinity::check_flow(&plan.segment.flow(), &plan.port, tables).map_err(is_kernels)?;
    }
    if Protocol(key.protocol) == Protocol::UDP && incoming::is_answered(&plan.segment.flow(), tables) {
        return Err(Stop::Pass(PassReason::KernelHeld));
    }
    deliver::survives(&plan.segment.ip)?;
    let ends = (key.source, key.destination);
    plan.route = deliver::route(packet, (plan.header, &plan.segment.ip), ends, key.domain, tables)?;
    plan.becomes = key;
    snat::begin(
        &plan.segment,
        &plan.route,
        (here, plan.port.slot, packet.length()),
        tables,
        &mut plan.becomes,
    )?;
    fragments::remember(packet, key.source.is_v4(), &plan.segment, &plan.becomes, tables)
}

/// Does what [`plan_begin`] has planned.
#[inline(always)]
pub fn begin<P: Packet, T: Tables>(packet: &mut P, _here: u32, tables: &T, plan: &BeginPlan) -> Next {
    let bytes = packet.length();
    rewrite(packet, plan.header, &plan.segment, &plan.becomes);
    tables.count(plan.port.slot, Lane::FromFast, bytes);
    Verdict::Deliver(deliver::by(plan.route)).into()
}
