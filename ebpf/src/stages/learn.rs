//! learn: who is beyond an uplink?
//!
//! A container's place is the agent's word, in the FDB, and nobody learns it. What an uplink brings is written down here, apart from
//! it: however many addresses a wire invents, no container loses its place.

use crate::Tables;
use crate::abi::learning::{AGEING, Learned, MAX_HELD, REFRESH};
use crate::abi::{PortKey, STATION_WIRE, Station, StationKey};

/// What came of hearing a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It is where it was, and that was written down not long ago.
    Again,
    /// It is where it was.
    Still,
    /// It is new.
    New,
    /// It was beyond another uplink.
    Moved,
    /// It is new, and there is no room.
    Refused,
}

/// What it means that a station is heard by the uplink `here` at the moment `now`.
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

/// Whether a station is still taken to be where it was heard last.
#[inline(always)]
pub fn is_known(known: &Learned, now: u64) -> bool {
    now.saturating_sub(known.seen) < AGEING
}

/// Writes down that the station `key` was heard by the uplink `here`, in the VLAN `vid`.
#[inline(always)]
pub fn heard<T: Tables>(key: &StationKey, vid: u16, here: u32, tables: &T) {
    let known = tables.learned(key);
    // Without a look at the uplink where there is nothing to write. Verifier: the clock is read in here, or the compiler takes the
    // moment of a station that is not known from it.
    if known.as_ref().is_some_and(|known| judge(Some(known), here, 0, tables.boot_time()) == Heard::Again) {
        return;
    }
    let Some(uplink) = tables.uplink(&PortKey { ifindex: here }) else { return };
    let now = tables.boot_time();
    let mut heard = judge(known.as_ref(), here, uplink.held, now);
    if heard != Heard::Refused {
        let station = Station { ifindex: here, slot: uplink.slot, mtu: uplink.mtu, flags: STATION_WIRE };
        // Other uplinks may have taken all the room that there is.
        if !tables.learn(key, &Learned { station, seen: now, vid, pad: [0; 3] }) {
            heard = Heard::Refused;
        }
    }
    if heard != Heard::Still {
        tables.note_heard(&PortKey { ifindex: here }, heard);
    }
}

/// Forgets the station `key` if it was beyond the uplink `here`: what the kernel's bridge sends out there in its name came from
/// this side, so it has moved onto the node, where the kernel's bridge knows it.
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
