//! `from_trunk`: tc ingress of the master of VLAN interfaces.

use crate::Tables;
use crate::abi::StationKey;
use crate::abi::vlan::MemberKey;
use crate::stages::classify::{VID, customer_tag};
use crate::stages::{count, deliver, flood, retag};
use crate::verdict::{Delivery, PassReason, Stop, Verdict};
use crate::wire::Packet;

/// The whole program. `here` is the master.
#[inline(always)]
pub fn run<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Verdict {
    let bytes = packet.length();
    let verdict = stages(packet, here, tables).into();
    count::arrived(&verdict, here, bytes, tables);
    verdict
}

#[inline(always)]
fn stages<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Result<Delivery, Stop> {
    let (frame, tci) = customer_tag(packet)?;
    if frame.destination.is_group() {
        // Other listeners on the node get the frame as it came.
        if tables.member(&MemberKey { bridge: here, position: 0 }).is_some() && packet.pop_tag() {
            flood::to_vlan_interfaces(packet, here, tci & VID, here, tables);
            retag::tag(packet, tci)?;
        }
        return Err(Stop::Pass(PassReason::NoInterface));
    }
    let key = StationKey { bridge: here, vid: tci & VID, mac: frame.destination };
    let station = tables.station(&key).ok_or(Stop::Pass(PassReason::NoInterface))?;
    retag::strip(packet, &station)?;
    Ok(deliver::into_container(packet, &station))
}
