//! `to_container` of a port in VLANs: drops what another of our programs has not delivered.

use crate::Tables;
use crate::stages::port::Missing;
use crate::stages::source_guard::link_local;
use crate::stages::{count, port};
use crate::verdict::{DropReason, PassReason, Verdict};
use crate::wire::Packet;

/// The whole program. `here` is the host end.
#[inline(always)]
pub fn run<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Verdict {
    link_local::hear(packet, here, Missing::Drop, tables);
    if packet.take_judged() {
        return Verdict::Pass(PassReason::Judged);
    }
    let port = match port::entry(here, Missing::Drop, tables) {
        Ok(port) => port,
        Err(stop) => return count::unknown(stop, here, packet.length(), tables).into(),
    };
    let verdict = Verdict::Drop(DropReason::KernelsWay);
    count::received(&verdict, &port, here, packet.length(), tables);
    verdict
}
