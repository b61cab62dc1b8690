//! `to_container`: tc egress of a container's host veth end. Judges what arrives by the kernel's path, and records which
//! flows are the kernel's.

use crate::Tables;
use crate::abi::{Port, STATION_HOST, StationKey};
use crate::stages::port::Missing;
use crate::stages::source_guard::link_local;
use crate::stages::{count, guard, origin_check, parse, port, track_kernel_flow};
use crate::verdict::{Delivery, DropReason, PassReason, Stop, Verdict};
use crate::wire::{Frame, Packet};

/// The whole program. `here` is the host end.
#[inline(always)]
pub fn run<P: Packet, T: Tables>(packet: &mut P, here: u32, missing: Missing, tables: &T) -> Verdict {
    // Delivered and counted by another of our programs.
    if packet.take_judged() {
        guard::mark(packet, missing, true);
        return Verdict::Pass(PassReason::Judged);
    }
    link_local::hear(packet, here, missing, tables);
    let port = match port::entry(here, missing, tables) {
        Ok(port) => port,
        Err(stop) => return count::unknown(stop, here, packet.length(), tables).into(),
    };
    let bytes = packet.length();
    let verdict: Verdict = stages(packet, here, &port, missing, tables).into();
    count::received(&verdict, &port, here, bytes, tables);
    guard::mark(packet, missing, verdict.is_passed());
    verdict
}

#[inline(always)]
fn stages<P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    port: &Port,
    missing: Missing,
    tables: &T,
) -> Result<Delivery, Stop> {
    let frame = parse::frame(packet)?;
    comes_back(packet, &frame, port, here, tables)?;
    if missing == Missing::Drop {
        origin_check::check(packet, &frame, port, tables)?;
    }
    track_kernel_flow::track(packet, &frame, port, here, tables);
    Err(Stop::Pass(PassReason::ByKernel))
}

/// Lets on what comes back to its port only if the container itself has sent it to one station (`hairpinMode`), or if the node has
/// routed it back to its sender. A bridge inside the container would take anything else as a sign that its own stations have moved out
/// of it.
///
/// # Errors
/// Drops the rest: the copy of what the bridge floods, and what stations behind the container send.
#[inline(always)]
fn comes_back<P: Packet, T: Tables>(
    packet: &P,
    frame: &Frame,
    port: &Port,
    here: u32,
    tables: &T,
) -> Result<(), Stop> {
    if packet.origin() == here && (frame.destination.is_group() || !frame.source.is(port.mac)) {
        let key = StationKey { bridge: port.bridge, vid: port.vid, mac: frame.source };
        let is_routed = tables.station(&key).is_some_and(|station| station.flags & STATION_HOST != 0);
        if !is_routed {
            return Err(Stop::Drop(DropReason::Hairpin));
        }
    }
    Ok(())
}
