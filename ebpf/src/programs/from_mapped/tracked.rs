//! Packets of connections of host ports that the kernel has opened ([`carry`]): translated as connection tracking does, or left to it.

use super::{TO_NODE, count_end};
use crate::Tables;
use crate::nat::rewrite::rewrite;
use crate::nat::{carry, masquerade};
use crate::programs::{BeginPlan, Next};
use crate::stages::deliver;
use crate::verdict::{Delivery, Stop};
use crate::wire::Packet;

/// What the container answers: out of the node.
#[inline(always)]
pub fn tracked<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T, plan: &BeginPlan) -> Next {
    let bytes = packet.length();
    let next = tracked_stages(packet, plan, bytes, tables).into();
    count_end(&next, &plan.port, here, bytes, tables);
    next
}

#[inline(always)]
fn tracked_stages<P: Packet, T: Tables>(
    packet: &mut P,
    BeginPlan { segment, header, .. }: &BeginPlan,
    bytes: u32,
    tables: &T,
) -> Result<Delivery, Stop> {
    let (becomes, _) = tables.becomes(&segment.key).ok_or(TO_NODE)?;
    deliver::survives(&segment.ip)?;
    // As the kernel, which translates an answer behind its routing.
    let (ends, bridge) = ((segment.key.source, becomes.destination), segment.key.domain);
    let route = deliver::route(packet, (*header, &segment.ip), ends, bridge, tables)?;
    carry::check(segment, (*header, &becomes), [bridge, route.ifindex], tables)?;
    masquerade::follow(segment, &becomes, bytes, tables)?;
    rewrite(packet, *header, segment, &becomes);
    Ok(deliver::by(route))
}
