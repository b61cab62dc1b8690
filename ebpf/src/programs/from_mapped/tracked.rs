//! Packets of connections that the kernel has opened ([`carry`]), by a host port or masqueraded: translated as connection tracking does, or left to it.

use super::{TO_NODE, count_end};
use crate::Tables;
use crate::abi::translation::{TRACKED_MASQUERADED, TupleKey};
use crate::abi::{AddressKey, PORT_SHARED};
use crate::nat::rewrite::rewrite;
use crate::nat::{carry, masquerade, snat};
use crate::programs::{BeginPlan, Next};
use crate::stages::deliver;
use crate::verdict::{Delivery, PassReason, Stop};
use crate::wire::Packet;

/// What the container answers or asks: out of the node.
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
    BeginPlan { segment, header, port, .. }: &BeginPlan,
    (here, bytes): (u32, u32),
    tables: &T,
) -> Result<Delivery, Stop> {
    // Other filters on the interface would not see it.
    if port.flags & PORT_SHARED != 0 {
        return Err(Stop::Pass(PassReason::Shared));
    }
    let (becomes, holder) = tables.becomes(&segment.key).ok_or(TO_NODE)?;
    is_containers(&segment.key, (&becomes, holder), here, tables)?;
    deliver::survives(&segment.ip)?;
    // As the kernel, which changes the source behind its routing.
    let (ends, bridge) = ((segment.key.source, becomes.destination), segment.key.domain);
    let route = deliver::route(packet, (*header, &segment.ip), ends, bridge, tables)?;
    carry::check(segment, (*header, &becomes), [bridge, route.ifindex], tables)?;
    masquerade::follow(segment, &becomes, bytes, tables)?;
    rewrite(packet, *header, segment, &becomes);
    Ok(deliver::by(route))
}

/// Lets on what the connection's container has `sent` by its own port.
///
/// # Errors
/// Passes what somebody else sends in its name, and what is of a host port that leads elsewhere by now.
#[inline(always)]
fn is_containers<T: Tables>(
    sent: &TupleKey,
    (becomes, holder): (&TupleKey, u32),
    here: u32,
    tables: &T,
) -> Result<(), Stop> {
    let owner = tables.owner(&AddressKey::new(sent.domain, 0, sent.source)).ok_or(TO_NODE)?;
    if owner.ifindex != here {
        return Err(TO_NODE);
    }
    if holder == TRACKED_MASQUERADED {
        return Ok(());
    }
    let mapping = snat::leads(becomes, tables).ok_or(TO_NODE)?;
    if mapping.leads_as(&sent.reversed(sent.domain)) { Ok(()) } else { Err(TO_NODE) }
}
