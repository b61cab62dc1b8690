//! deliver: the last checks, then all edits at once.

use crate::abi::{STATION_PEER_UP, STATION_QUEUED, Station};
use crate::packet::Packet;
use crate::verdict::{Delivery, PassReason, Stop, Way};

const ETHERNET_BYTES: u32 = 14;

/// Hands a frame that came out of a container to `station`: into its peer where that is up and nothing has to be
/// passed on the way, else through its port.
///
/// # Errors
/// Passes what does not fit.
#[inline(always)]
pub fn from_container<P: Packet>(packet: &mut P, station: &Station) -> Result<Delivery, Stop> {
    fits(packet, station)?;
    if station.flags & (STATION_PEER_UP | STATION_QUEUED) != STATION_PEER_UP {
        return Ok(through_port(packet, station));
    }
    packet.become_own();
    Ok(Delivery { ifindex: station.ifindex, slot: station.slot, way: Way::Peer })
}

/// Hands a frame from the node's own stack to `station`. From a tc egress hook only its port can be reached.
///
/// # Errors
/// Passes what does not fit.
#[inline(always)]
pub fn from_host<P: Packet>(packet: &mut P, station: &Station) -> Result<Delivery, Stop> {
    fits(packet, station)?;
    Ok(through_port(packet, station))
}

#[inline(always)]
fn through_port<P: Packet>(packet: &mut P, station: &Station) -> Delivery {
    packet.mark_judged();
    Delivery { ifindex: station.ifindex, slot: station.slot, way: Way::Port }
}

/// The kernel's bridge drops a frame that is larger than its port's MTU, and lets every GSO packet through
/// (`is_skb_forwardable`); redirecting to a peer checks nothing at all.
#[inline(always)]
fn fits<P: Packet>(packet: &P, station: &Station) -> Result<(), Stop> {
    if packet.segment_size() == 0 && packet.length() > station.mtu + ETHERNET_BYTES {
        return Err(Stop::Pass(PassReason::TooBig));
    }
    Ok(())
}
