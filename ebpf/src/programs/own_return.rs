//! The part of `from_wire` for what returns to a connection of the kernel's that has another port outside ([`super::to_wire`]).

use super::{DnatPlan, Next};
use crate::Tables;
use crate::nat::{masquerade, port_change};
use crate::stages::isolate;
use crate::verdict::{Delivery, PassReason, Stop};
use crate::wire::Packet;

/// Gives the packet the port back that its receiver knows.
#[inline(always)]
pub fn own_return<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T, plan: &DnatPlan) -> Next {
    stages(packet, here, tables, plan).into()
}

#[inline(always)]
fn stages<P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    tables: &T,
    DnatPlan { segment, .. }: &DnatPlan,
) -> Result<Delivery, Stop> {
    let stray = Stop::Pass(PassReason::Stray);
    // No container answers for an address outside.
    if isolate::is_bridge(here, tables) {
        return Err(stray);
    }
    let (becomes, _) = tables.becomes(&segment.key).ok_or(stray)?;
    masquerade::follow(segment, &becomes, packet.length(), tables)?;
    port_change::write(packet, segment, &becomes);
    Ok(Delivery::onward(here))
}
