//! `MENTIONS`: the addresses that somebody may know.

use shunt_dataplane::abi::{AddressKey, mention as place_of};

use crate::maps::MENTIONS;

/// See [`shunt_dataplane::Tables::mention`].
#[inline(always)]
pub(super) fn mention(key: &AddressKey) {
    let (entry, byte) = place_of(key);
    if let Some(known) = MENTIONS.get_ptr_mut(entry) {
        // SAFETY: the pointer is to a live map value, and the byte within it is one into which everybody writes the same.
        unsafe { (*known)[byte & 7] = 1 };
    }
}

/// See [`shunt_dataplane::Tables::is_mentioned`].
#[inline(always)]
pub(super) fn is_mentioned(key: &AddressKey) -> bool {
    let (entry, byte) = place_of(key);
    MENTIONS.get(entry).is_none_or(|known| known[byte & 7] != 0)
}
