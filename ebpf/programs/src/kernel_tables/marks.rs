//! Single words of `FDB` and `PORTS` that the programs write.

use shunt_dataplane::abi::{
    AFFINITY_APART, AFFINITY_FAST, AFFINITY_LOOKUP, PORT_AWAY, PortKey, STATION_APART, STATION_MOVED,
    StationKey,
};

use crate::maps::{FDB, PORTS};

/// See [`shunt_dataplane::Tables::mark_moved`].
#[inline(always)]
pub(super) fn moved(key: &StationKey, port: &PortKey, is_moved: bool) {
    let mark = |flags: *mut u32, bit: u32| {
        // SAFETY: the pointer is to an aligned word of a live map value, in which the programs write this bit alone.
        unsafe { *flags = if is_moved { *flags | bit } else { *flags & !bit } };
    };
    if let Some(station) = FDB.get_ptr_mut(key) {
        // SAFETY: a live map value.
        mark(unsafe { &raw mut (*station).flags }, STATION_MOVED);
    }
    if let Some(port) = PORTS.get_ptr_mut(port) {
        // SAFETY: a live map value.
        mark(unsafe { &raw mut (*port).flags }, PORT_AWAY);
    }
}

/// See [`shunt_dataplane::Tables::mark_port`].
#[inline(always)]
pub(super) fn port(key: &PortKey, bit: u32, is_set: bool) {
    if let Some(port) = PORTS.get_ptr_mut(key) {
        // SAFETY: an aligned word of a live map value. Of two CPUs that change different bits of it at once one may be undone; either is
        // written again by the next frame of its kind.
        unsafe { (*port).flags = if is_set { (*port).flags | bit } else { (*port).flags & !bit } };
    }
}

/// See [`shunt_dataplane::Tables::require_flow_lookup`].
#[inline(always)]
pub(super) fn require_flow_lookup(key: &PortKey) {
    if let Some(port) = PORTS.get_ptr_mut(key) {
        // SAFETY: the pointer is to a live map value; `affinity` is one aligned word and only ever leaves
        // `AFFINITY_FAST` here, so two writers cannot disagree.
        unsafe {
            if (*port).affinity == AFFINITY_FAST {
                (*port).affinity = AFFINITY_LOOKUP;
            }
        }
    }
}

/// See [`shunt_dataplane::Tables::put_apart`].
#[inline(always)]
pub(super) fn apart(port: &PortKey, station: &StationKey) {
    if let Some(port) = PORTS.get_ptr_mut(port) {
        // SAFETY: one aligned word of a live map value.
        unsafe { (*port).affinity = AFFINITY_APART };
    }
    if let Some(station) = FDB.get_ptr_mut(station) {
        // SAFETY: as above; the programs write such bits alone.
        unsafe { (*station).flags |= STATION_APART };
    }
}
