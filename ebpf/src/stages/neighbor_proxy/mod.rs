//! answer: who has an address? Asked of everybody, and known.
//!
//! An ARP request and a neighbour solicitation go to a group, and the kernel's bridge makes a copy for each of its ports, of which one
//! has an answer: a thousand containers that look for each other are a thousand times a thousand copies. A container's address
//! is known (`ADDRESSES`), so what asks for it is made the answer and goes back. This is what the kernel's bridge calls
//! neighbour suppression (`br_do_proxy_suppress_arp`, `br_do_suppress_nd`, net/bridge/br_arp_nd_proxy.c), for addresses that the
//! agent has written down and nobody has learned.
//!
//! What is to be heard by others goes on: probes for duplicates (from nobody's address, RFC 5227 and RFC 4862), announcements of the
//! asker's own address, and whatever is no plain question. So does a question for whom the asker may not reach, or who is not
//! there: who answers that, if anybody, is for the bridge.
//!
//! The journeys leave what may be a question to the functions here, so that no other packet pays for them. Only ports in VLANs ask
//! in their journey itself, which has to flood what is not answered.

mod arp;
mod nd;

use crate::abi::{AddressKey, PORT_ALONE, PORT_ISOLATED, Port, STATION_PEER_UP, Station};
use crate::stages::port::Missing;
use crate::stages::{count, guard, port};
use crate::verdict::{Delivery, PassReason, Stop, Verdict, Way};
use crate::wire::address::{Address, Mac};
use crate::wire::packet::Packet;
use crate::wire::{EtherType, Frame};
use crate::{Tables, journey, wire};

/// Where a question is in its frame, which has no tag among its bytes: what is known beforehand is easier to verify.
const PAYLOAD: u32 = 14;

/// Who is asked for, and by whom.
#[derive(Clone, Copy)]
struct Question {
    asker: Address,
    target: Address,
}

/// In which VLAN a question is, and which one stations have in the FDB of its bridge.
#[derive(Clone, Copy, Debug)]
pub struct Within {
    /// Its VLAN.
    pub vid: u16,
    /// As in [`crate::abi::StationKey::vid`].
    pub stations: u16,
}

/// What `find` said, but for a frame that may be a question.
///
/// # Errors
/// `find`'s own; passes what the functions here are to look at.
#[inline(always)]
pub fn unless_question(found: Result<Station, Stop>, frame: &Frame) -> Result<Station, Stop> {
    match found {
        Err(Stop::Pass(PassReason::Group)) if may_be_question(frame) => Err(Stop::Pass(PassReason::MayAsk)),
        found => found,
    }
}

#[inline(always)]
fn may_be_question(frame: &Frame) -> bool {
    matches!(frame.ether_type, EtherType::ARP | EtherType::IPV6)
}

/// What [`journey::from_container`] has left.
#[inline(always)]
pub fn from_container<P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    missing: Missing,
    tables: &T,
) -> Verdict {
    let port = match port::entry(here, missing, tables) {
        Ok(port) => port,
        Err(stop) => return count::unknown(stop, here, packet.length(), tables),
    };
    let within = Within { vid: port.vid, stations: port.vid };
    let bytes = packet.length();
    let back =
        wire::frame(packet).ok().and_then(|frame| to_container(packet, &frame, &port, within, here, tables));
    let verdict = back.map_or(Verdict::Pass(PassReason::Group), Verdict::Deliver);
    count::sent(&verdict, &port, here, bytes, tables);
    guard::checked(packet, missing, verdict)
}

/// What [`journey::from_host`] has left.
#[inline(always)]
pub fn from_host<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Verdict {
    let port = match port::entry(here, Missing::Pass, tables) {
        Ok(port) => port,
        Err(stop) => return count::unknown(stop, here, packet.length(), tables),
    };
    let bytes = packet.length();
    let back = wire::frame(packet).ok().and_then(|frame| to_host(packet, &frame, &port, tables));
    let verdict = back.map_or(Verdict::Pass(PassReason::Group), Verdict::Deliver);
    count::sent(&verdict, &port, here, bytes, tables);
    verdict
}

/// The whole of the program `from_container`: the journey of that name, and this one.
pub fn whole_from_container<P: Packet, T: Tables>(
    packet: &mut P,
    here: u32,
    missing: Missing,
    tables: &T,
) -> Verdict {
    match journey::from_container(packet, here, missing, tables) {
        Verdict::Pass(PassReason::MayAsk) => from_container(packet, here, missing, tables),
        verdict => verdict,
    }
}

/// The same of `from_host`.
pub fn whole_from_host<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Verdict {
    match journey::from_host(packet, here, tables) {
        Verdict::Pass(PassReason::MayAsk) => from_host(packet, here, tables),
        verdict => verdict,
    }
}

/// The answer to what the container behind `port` asks, on its way back to it; none where it asks for nobody that is known.
#[inline(always)]
pub fn to_container<P: Packet, T: Tables>(
    packet: &mut P,
    frame: &Frame,
    port: &Port,
    within: Within,
    here: u32,
    tables: &T,
) -> Option<Delivery> {
    if !turned(packet, frame, port, within, here, tables) {
        return None;
    }
    packet.become_own();
    Some(Delivery { ifindex: here, slot: port.slot, way: Way::Peer })
}

/// Makes what is asked by `port` its answer. False where it asks for nobody that is known.
#[inline(always)]
pub fn turned<P: Packet, T: Tables>(
    packet: &mut P,
    frame: &Frame,
    port: &Port,
    within: Within,
    here: u32,
    tables: &T,
) -> bool {
    let Some(question) = question(packet, frame) else { return false };
    let Some((asked, ifindex)) = known(&question, port.bridge, within, tables) else { return false };
    let apart = (port.flags | asked.flags) & PORT_ALONE | port.flags & asked.flags & PORT_ISOLATED;
    ifindex != here && apart == 0 && told(packet, frame, &question, asked.mac)
}

/// The answer to what the node asks by the bridge device `port`, on its way back in by it.
#[inline(always)]
fn to_host<P: Packet, T: Tables>(packet: &mut P, frame: &Frame, port: &Port, tables: &T) -> Option<Delivery> {
    let question = question(packet, frame)?;
    let within = Within { vid: port.vid, stations: port.vid };
    let (asked, _) = known(&question, port.bridge, within, tables)?;
    told(packet, frame, &question, asked.mac).then_some(Delivery {
        ifindex: port.bridge,
        slot: port.slot,
        way: Way::Into,
    })
}

/// What a frame asks; none where it is no plain question, or one that others have to hear.
#[inline(always)]
fn question<P: Packet>(packet: &mut P, frame: &Frame) -> Option<Question> {
    if frame.inline_tags != 0 {
        return None;
    }
    let question = match frame.ether_type {
        EtherType::ARP if frame.destination.is_broadcast() => {
            readable(packet, arp::END)?;
            arp::question(packet, frame)?
        }
        EtherType::IPV6 => {
            readable(packet, nd::END)?;
            nd::question(packet, frame)?
        }
        _ => return None,
    };
    (!question.asker.is_unspecified() && !question.asker.is(question.target)).then_some(question)
}

/// Makes a frame's first `bytes` bytes readable, as far as it has them.
#[inline(always)]
fn readable<P: Packet>(packet: &mut P, bytes: u32) -> Option<()> {
    let last: Option<u16> = packet.load(bytes - 2);
    (last.is_some() || packet.linearize(bytes)).then_some(())
}

/// The container that is asked for, if it is there: its port, and the interface. In the question's VLAN: others may use the
/// address, too.
#[inline(always)]
fn known<T: Tables>(question: &Question, bridge: u32, within: Within, tables: &T) -> Option<(Port, u32)> {
    let key = AddressKey::new(bridge, within.vid, question.target);
    let (asked, station) = tables.resident(&key, within.stations)?;
    (station.flags & STATION_PEER_UP != 0).then_some((asked, station.ifindex))
}

/// Makes the question in a frame its answer: `mac` has the address. False where the kernel has no memory for it.
#[inline(always)]
fn told<P: Packet>(packet: &mut P, frame: &Frame, question: &Question, mac: Mac) -> bool {
    let written = if frame.ether_type == EtherType::ARP {
        arp::tell(packet, frame, question, mac)
    } else {
        nd::tell(packet, frame, question, mac)
    };
    written.is_some() && packet.store(0, &[frame.source, mac])
}
