//! `UPLINKS`: what each uplink has learned.

use shunt_dataplane::abi::PortKey;
use shunt_dataplane::tables::Heard;

use super::atomic;
use crate::maps::UPLINKS;

/// See [`shunt_dataplane::Tables::count_heard`].
#[inline(always)]
pub(super) fn count(key: &PortKey, heard: Heard) {
    let Some(uplink) = UPLINKS.get_ptr_mut(key) else { return };
    // SAFETY: the pointer is to a live map value, whose counts are aligned words.
    unsafe {
        match heard {
            Heard::New => atomic::add(&raw mut (*uplink).held, 1),
            Heard::Refused => atomic::add(&raw mut (*uplink).refused, 1),
            Heard::Moved => atomic::add(&raw mut (*uplink).moved, 1),
            Heard::Again | Heard::Still => {}
        }
    }
}
