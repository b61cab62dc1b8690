//! Later fragments of translated datagrams.

use super::count_end;
use crate::Tables;
use crate::abi::{AddressKey, PortKey};
use crate::nat::{self, clone_to_host, fragments};
use crate::programs::Next;
use crate::stages::{deliver, isolate};
use crate::verdict::{Delivery, DropReason, PassReason, Stop};
use crate::wire::address::Macs;
use crate::wire::{self, Frame, LaterFragment, Packet};

/// Later fragments, which have no transport header: as their datagram's first one. [`Next::IcmpError`] for other packets.
#[inline(always)]
pub fn later_fragment<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Next {
    let bytes = packet.length();
    let Some((frame, fragment)) = wire::later_fragment(packet) else { return Next::IcmpError };
    let next = later_fragment_stages(packet, &frame, &fragment, here, tables).into();
    count_end(&next, here, bytes, tables);
    next
}

#[inline(always)]
fn later_fragment_stages<P: Packet, T: Tables>(
    packet: &mut P,
    frame: &Frame,
    fragment: &LaterFragment,
    here: u32,
    tables: &T,
) -> Result<Delivery, Stop> {
    if !packet.is_for_this_host() {
        return Err(Stop::Pass(PassReason::NotLocal));
    }
    clone_to_host::unless_clone(frame, fragment.ip.protocol)?;
    let from = nat::dnat::domain(packet, here, tables);
    let becomes = fragments::becomes(fragment, from, tables)?;
    let key = AddressKey::new(becomes.domain, 0, becomes.destination);
    let resident = tables.resident(&key, 0).ok_or(Stop::Pass(PassReason::UnknownStation))?;
    let (container, station) = resident;
    let bridge = tables.port(&PortKey { ifindex: becomes.domain }).ok_or(Stop::Pass(PassReason::NoPort))?;
    isolate::translated(from, becomes.domain, &station, tables)?;
    deliver::survives(&fragment.ip)?;
    deliver::fits(packet, &station).map_err(|_| Stop::Drop(DropReason::TooBig))?;
    clone_to_host::clone(packet, fragment.ip.protocol, here);
    deliver::address(packet, Macs { destination: container.mac, source: bridge.mac })?;
    fragments::rewrite(packet, frame, &fragment.ip, &becomes);
    Ok(deliver::into_container(packet, &station))
}
