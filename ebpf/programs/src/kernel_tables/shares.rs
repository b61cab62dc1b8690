//! `SHARES`: what each container has of the tables of connections.

use shunt_dataplane::abi::share::{Share, Side};

use super::atomic;
use crate::maps::SHARES;

/// See [`shunt_dataplane::Tables::share`].
#[inline(always)]
pub(super) fn share(slot: u32) -> Option<Share> {
    SHARES.get(slot).copied()
}

/// See [`shunt_dataplane::Tables::begin_openings`].
#[inline(always)]
pub(super) fn begin(slot: u32, side: Side, due: u64) {
    if let Some(share) = SHARES.get_ptr_mut(slot) {
        // SAFETY: the pointer is to a live map value. Of two CPUs that find nothing due one may be overwritten: its opening is free.
        unsafe { (*share).due[side as usize] = due };
    }
}

/// See [`shunt_dataplane::Tables::charge_opening`].
#[inline(always)]
pub(super) fn charge(slot: u32, side: Side, nanoseconds: u64) {
    if let Some(share) = SHARES.get_ptr_mut(slot) {
        // SAFETY: the pointer is to a live map value, whose words are aligned.
        unsafe { atomic::add(&raw mut (*share).due[side as usize], nanoseconds) };
    }
}

/// An opening has been answered.
#[inline(always)]
pub(super) fn pay_back(slot: u32, side: usize) {
    let Some(share) = SHARES.get_ptr_mut(slot) else { return };
    // SAFETY: as above.
    unsafe {
        let price = u64::from((*share).price);
        // What an earlier agent's programs have begun has not been charged.
        if (*share).due[side & 3] >= price {
            atomic::add(&raw mut (*share).due[side & 3], price.wrapping_neg());
        }
    }
}

/// Whether the container may have one more entry of `ASSURED`.
#[inline(always)]
pub(super) fn has_room(slot: u32) -> bool {
    SHARES.get(slot).is_none_or(Share::has_room)
}

/// Counts entries of `ASSURED`.
#[inline(always)]
pub(super) fn count(slot: u32, entries: i64) {
    if let Some(share) = SHARES.get_ptr_mut(slot) {
        // SAFETY: as above; a signed word is added to as an unsigned one is.
        unsafe { atomic::add((&raw mut (*share).assured).cast(), entries.cast_unsigned()) };
    }
}
