//! `from_container`: tc ingress of a container's host veth end. Decides whether a frame takes the fast path.
//!
//! The programs for open ports and for restricted ones are this pipeline; ports in VLANs have [`super::from_member`].

use super::Next;
use crate::Tables;
use crate::abi::{NO_SLOT, PORT_ANSWERS_NEIGHBORS, PORT_MAPPED, PORT_MASQUERADED, Port};
use crate::stages::neighbor_proxy::Within;
use crate::stages::port::Missing;
use crate::stages::{
    announce, count, deliver, find, flow_affinity, guard, isolate, mac_filter, neighbor_proxy, parse, police,
    port, source_guard, suppress,
};
use crate::verdict::{Delivery, PassReason, Stop, Verdict, Way};
use crate::wire::{Frame, Packet};

/// The whole program.
pub fn run<P: Packet, T: Tables>(packet: &mut P, here: u32, missing: Missing, tables: &T) -> Verdict {
    let next = match forward(packet, here, missing, tables) {
        Next::Suppress => suppress(packet, here, missing, tables),
        next => next,
    };
    let next = match next {
        Next::Hear => hear(packet, here, missing, tables),
        next => next,
    };
    match next {
        Next::Answer => answer(packet, here, missing, tables),
        next => next.verdict(),
    }
}

/// The first part: everything but what is said to groups. `here` is the host end.
#[inline(always)]
pub fn forward<P: Packet, T: Tables>(packet: &mut P, here: u32, missing: Missing, tables: &T) -> Next {
    let port = match port::entry(here, missing, tables) {
        Ok(port) => port,
        Err(stop) => return count::unknown(stop, here, packet.length(), tables).into(),
    };
    let bytes = packet.length();
    let next = stages(packet, here, &port, missing, tables).into();
    // What another part or program goes on with, that one counts.
    if let Next::Done(verdict) = &next {
        count::sent(verdict, &port, here, bytes, tables);
    }
    guard::mark(packet, missing, next.is_passed());
    next
}

#[inline(always)]
fn stages<P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    port: &Port,
    missing: Missing,
    tables: &T,
) -> Result<Delivery, Next> {
    let frame = parse::frame(packet)?;
    // First: a frame is charged for whatever becomes of it.
    police::rate(packet, &frame, port, tables)?;
    // The source guard comes before the MAC filter: what the filter passes as a station behind the container must not speak for
    // others' addresses. Verifier: in the programs for restricted ports only, as it costs more than all other stages.
    if missing == Missing::Drop {
        source_guard::check(packet, &frame, port, here, tables)?;
        police::flood(&frame, port, tables)?;
    }
    mac_filter::check(&frame, port).map_err(|stop| behind(stop, &frame))?;
    port::not_shared(port).map_err(|stop| behind(stop, &frame))?;
    let station = find::station(&frame, port, here, tables).map_err(|stop| {
        if stop == Stop::Pass(PassReason::ToHost) && port.flags & (PORT_MAPPED | PORT_MASQUERADED) != 0 {
            tables.hand_on(here, port);
            return Next::Reply;
        }
        elsewhere(stop, &frame, port)
    })?;
    isolate::ports(port, &station)?;
    flow_affinity::check_sent(packet, &frame, (port, [here, station.ifindex]), tables)
        .map_err(|stop| elsewhere(stop, &frame, port))?;
    Ok(deliver::from_container(packet, &station)?)
}

/// The part or program that goes on with a frame that is not delivered to a station.
#[inline(always)]
fn elsewhere(stop: Stop, frame: &Frame, port: &Port) -> Next {
    match stop {
        Stop::Pass(PassReason::Group) if neighbor_proxy::is_candidate(frame) => Next::Suppress,
        Stop::Pass(reason) if port.flags & PORT_ANSWERS_NEIGHBORS != 0 && may_be_answer(reason) => {
            Next::Reply
        }
        stop => stop.into(),
    }
}

/// Whether a frame that the kernel's bridge would get may be the answer of a translated connection to a neighbour.
#[inline(always)]
const fn may_be_answer(reason: PassReason) -> bool {
    matches!(
        reason,
        PassReason::UnknownStation | PassReason::KernelFlow | PassReason::Fragment | PassReason::NoFlow
    )
}

/// The parts that go on with a frame of another station behind the container, or of its own after that was heard elsewhere.
#[inline(always)]
fn behind(stop: Stop, frame: &Frame) -> Next {
    match stop {
        Stop::Pass(PassReason::ForeignSource | PassReason::Away) if frame.destination.is_group() => {
            Next::Suppress
        }
        Stop::Pass(PassReason::ForeignSource | PassReason::Away) => Next::Hear,
        stop => stop.into(),
    }
}

/// The second part, for [`Next::Suppress`]: what nobody needs but the node is the node's alone, and all else is heard.
#[inline(always)]
pub fn suppress<P: Packet, T: Tables>(packet: &mut P, here: u32, missing: Missing, tables: &T) -> Next {
    let port = match port::entry(here, missing, tables) {
        Ok(port) => port,
        Err(stop) => return count::unknown(stop, here, packet.length(), tables).into(),
    };
    let is_needless =
        parse::frame(packet).is_ok_and(|frame| suppress::is_needless(packet, &frame, &port, here, tables));
    if !is_needless {
        return Next::Hear;
    }
    let verdict = Verdict::Deliver(Delivery { ifindex: port.bridge, slot: NO_SLOT, way: Way::Into });
    count::sent(&verdict, &port, here, packet.length(), tables);
    verdict.into()
}

/// The third part: announcements, for [`Next::Hear`]. The neighbour proxy answers nobody who has said something new: others have to hear it.
#[inline(always)]
pub fn hear<P: Packet, T: Tables>(packet: &mut P, here: u32, missing: Missing, tables: &T) -> Next {
    let port = match port::entry(here, missing, tables) {
        Ok(port) => port,
        Err(stop) => return count::unknown(stop, here, packet.length(), tables).into(),
    };
    let Ok(frame) = parse::frame(packet) else { return Next::Answer };
    let within = Within { vid: port.vid, stations: port.vid };
    let is_news = announce::hear(packet, &frame, &port, within, here, tables);
    let reason = match frame.source.is(port.mac) {
        true if !is_news => return Next::Answer,
        true if frame.destination.is_group() => PassReason::Group,
        true => PassReason::Away,
        false => PassReason::ForeignSource,
    };
    let verdict = Verdict::Pass(reason);
    count::sent(&verdict, &port, here, packet.length(), tables);
    guard::mark(packet, missing, true);
    verdict.into()
}

/// The last part: the neighbour proxy, for [`Next::Answer`].
#[inline(always)]
pub fn answer<P: Packet, T: Tables>(packet: &mut P, here: u32, missing: Missing, tables: &T) -> Verdict {
    let port = match port::entry(here, missing, tables) {
        Ok(port) => port,
        Err(stop) => return count::unknown(stop, here, packet.length(), tables).into(),
    };
    let within = Within { vid: port.vid, stations: port.vid };
    let bytes = packet.length();
    let answered = parse::frame(packet)
        .ok()
        .and_then(|frame| neighbor_proxy::to_container(packet, &frame, &port, within, here, tables));
    if let Some(delivery) = answered {
        let verdict = Verdict::Deliver(delivery);
        count::sent(&verdict, &port, here, bytes, tables);
        return verdict;
    }
    let verdict = Verdict::Pass(PassReason::Group);
    count::sent(&verdict, &port, here, bytes, tables);
    guard::mark(packet, missing, true);
    verdict
}
