//! `to_trunk`: tc egress of the host end of a container's interface that is the parent of VLAN interfaces. The FDB has a VLAN's
//! one interface under the parent and [`Mac::default`].

use crate::Tables;
use crate::abi::StationKey;
use crate::stages::classify::{VID, customer_tag};
use crate::stages::{count, deliver, retag};
use crate::verdict::{Delivery, PassReason, Stop, Verdict};
use crate::wire::Packet;
use crate::wire::address::Mac;

/// The whole program. `here` is the parent's host end.
#[inline(always)]
pub fn run<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Verdict {
    let bytes = packet.length();
    let verdict = stages(packet, here, tables).into();
    count::arrived(&verdict, here, bytes, tables);
    verdict
}

#[inline(always)]
fn stages<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Result<Delivery, Stop> {
    let (_, tci) = customer_tag(packet)?;
    let key = StationKey { bridge: here, vid: tci & VID, mac: Mac::default() };
    let station = tables.station(&key).ok_or(Stop::Pass(PassReason::NoInterface))?;
    retag::strip(packet, &station)?;
    Ok(deliver::through_port(packet, &station))
}
