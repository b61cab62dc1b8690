//! `COUNTERS` and `DROPS`.

use shunt_dataplane::abi::{Count, DropKey};
use shunt_dataplane::tables::Lane;

use super::update::ANY;
use crate::maps::{COUNTERS, DROPS};

/// See [`shunt_dataplane::Tables::count`].
#[inline(always)]
pub(super) fn count(slot: u32, lane: Lane, bytes: u32) {
    let Some(counters) = COUNTERS.get_ptr_mut(slot) else {
        return;
    };
    // SAFETY: the pointer is to this CPU's value, which no other program on this CPU interrupts.
    unsafe {
        let counters = &mut *counters;
        add(
            match lane {
                Lane::FromFast => &mut counters.from_fast,
                Lane::FromKernel => &mut counters.from_kernel,
                Lane::FromDropped => &mut counters.from_dropped,
                Lane::ToFast => &mut counters.to_fast,
                Lane::ToKernel => &mut counters.to_kernel,
                Lane::ToDropped => &mut counters.to_dropped,
            },
            bytes,
        );
    }
}

/// See [`shunt_dataplane::Tables::count_drop`].
#[inline(always)]
pub(super) fn count_drop(key: &DropKey, bytes: u32) {
    match DROPS.get_ptr_mut(key) {
        // SAFETY: as in `count`.
        Some(count) => add(unsafe { &mut *count }, bytes),
        None => {
            let _ = DROPS.insert(key, Count { packets: 1, bytes: u64::from(bytes) }, ANY);
        }
    }
}

#[inline(always)]
fn add(count: &mut Count, bytes: u32) {
    count.packets += 1;
    count.bytes += u64::from(bytes);
}
