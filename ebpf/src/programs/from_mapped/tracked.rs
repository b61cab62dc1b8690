//! Packets of connections of host ports that the kernel has opened ([`carry`]): translated as connection tracking does, or left to it.

use super::{TO_NODE, count_end};
use crate::Tables;
use crate::abi::AddressKey;
use crate::abi::translation::TupleKey;
use crate::nat::rewrite::rewrite;
use crate::nat::{carry, masquerade, snat};
use crate::programs::{BeginPlan, Next};
use crate::stages::deliver;
use crate::verdict::{Delivery, Stop};
use crate::wire::Packet;

/// What the container answers: out of the node.
#[inline(always)]
pub fn tracked<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T, plan: &BeginPlan) -> Next {
    let bytes = packet.length();
    let next = tracked_stages(packet, plan, (here, bytes), tables).into();
    count_end(&next, &plan.port, here, bytes, tables);
    next
}

#[inline(always)]
fn tracked_stages<P: Packet, T: Tables>(
    packet: &mut P,
    BeginPlan { segment, header, .. }: &BeginPlan,
    (here, bytes): (u32, u32),
    tables: &T,
) -> Result<Delivery, Stop> {
    let (becomes, _) = tables.becomes(&segment.key).ok_or(TO_NODE)?;
    is_containers(&segment.key, &becomes, here, tables)?;
    deliver::survives(&segment.ip)?;
    // As the kernel, which translates an answer behind its routing.
    let (ends, bridge) = ((segment.key.source, becomes.destination), segment.key.domain);
    let route = deliver::route(packet, (*header, &segment.ip), ends, bridge, tables)?;
    carry::check(segment, (*header, &becomes), [bridge, route.ifindex], tables)?;
    masquerade::follow(segment, &becomes, bytes, tables)?;
    rewrite(packet, *header, segment, &becomes);
    Ok(deliver::by(route))
}

/// Lets on what the host port's container has `sent` by its own port.
///
/// # Errors
/// Passes what somebody else sends in its name, and what is of a host port that leads elsewhere by now.
#[inline(always)]
fn is_containers<T: Tables>(sent: &TupleKey, becomes: &TupleKey, here: u32, tables: &T) -> Result<(), Stop> {
    let owner = tables.owner(&AddressKey::new(sent.domain, 0, sent.source)).ok_or(TO_NODE)?;
    let mapping = snat::leads(becomes, tables).ok_or(TO_NODE)?;
    if owner.ifindex != here || !mapping.leads_as(&sent.reversed(sent.domain)) {
        return Err(TO_NODE);
    }
    Ok(())
}
