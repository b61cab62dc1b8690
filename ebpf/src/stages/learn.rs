//! learn: the stations beyond uplinks.
//!
//! The agent writes containers into the FDB, and no program learns them. Stations that an uplink brings are learned into a map of their
//! own (`LEARNED`): however many addresses a network invents, no container loses its place.

use crate::Tables;
use crate::abi::learning::{AGEING, Learned, MAX_HELD, REFRESH};
use crate::abi::{PortKey, STATION_WIRE, Station, StationKey};
use crate::tables::Heard;

/// The result of hearing a station by the uplink `here` at the time `now`.
#[inline(always)]
pub fn judge(known: Option<&Learned>, here: u32, held: u64, now: u64) -> Heard {
    match known {
        Some(known) if known.station.ifindex != here => Heard::Moved,
        Some(known) if now.saturating_sub(known.seen) < REFRESH => Heard::Again,
        Some(_) => Heard::Still,
        None if held >= MAX_HELD => Heard::Refused,
        None => Heard::New,
    }
}

/// Whether a station has not aged out.
#[inline(always)]
pub fn is_known(known: &Learned, now: u64) -> bool {
    now.saturating_sub(known.seen) < AGEING
}

/// Records that the station `key` was heard by the uplink `here`, in the VLAN `vid`.
#[inline(always)]
pub fn heard<T: Tables>(key: &StationKey, vid: u16, here: u32, tables: &T) {
    let known = tables.learned(key);
    // No look-up of the uplink where there is nothing to record. Verifier: the clock is read in here, or the compiler reads it for
    // unknown stations as well.
    if known.as_ref().is_some_and(|known| judge(Some(known), here, 0, tables.boot_time()) == Heard::Again) {
        return;
    }
    let Some(uplink) = tables.uplink(&PortKey { ifindex: here }) else { return };
    let now = tables.boot_time();
    let mut heard = judge(known.as_ref(), here, uplink.held, now);
    if heard != Heard::Refused {
        let station = Station { ifindex: here, slot: uplink.slot, mtu: uplink.mtu, flags: STATION_WIRE };
        // Other uplinks may have filled the table.
        if !tables.learn(key, &Learned { station, seen: now, vid, pad: [0; 3] }) {
            heard = Heard::Refused;
        }
    }
    if heard != Heard::Still {
        tables.count_heard(&PortKey { ifindex: here }, heard);
    }
}

/// Forgets the station `key` if it was beyond the uplink `here`: the kernel's bridge sends a frame with its source address out there, so
/// it has moved onto the node, where the kernel's bridge knows it.
#[inline(always)]
pub fn sent_from_within<T: Tables>(key: &StationKey, here: u32, tables: &T) {
    if tables.learned(key).is_some_and(|known| known.station.ifindex == here) {
        tables.unlearn(key);
    }
}

/// The station `key`, if it is beyond an uplink.
#[inline(always)]
pub fn beyond<T: Tables>(key: &StationKey, tables: &T) -> Option<Station> {
    let known = tables.learned(key)?;
    is_known(&known, tables.boot_time()).then_some(known.station)
}
