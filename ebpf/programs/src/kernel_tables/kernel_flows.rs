//! `KERNEL_FLOWS`, `INCOMING_FLOWS` and `CLAIMS`: what is the kernel's. An LRU map makes room; should it fail under contention, the flow's next
//! packet records it again.

use aya_ebpf::maps::LruHashMap;
use shunt_dataplane::abi::translation::TupleKey;
use shunt_dataplane::abi::{FlowKey, KernelFlow};

use super::clock::boot_time;
use super::update::ANY;
use crate::maps::CLAIMS;

/// Records a flow.
#[inline(always)]
pub(super) fn record(map: &LruHashMap<FlowKey, KernelFlow>, key: &FlowKey) {
    let _ = map.insert(key, KernelFlow { noticed: boot_time() }, ANY);
}

/// See [`shunt_dataplane::Tables::claimed`].
#[inline(always)]
pub(super) fn claimed(key: &TupleKey) -> Option<u64> {
    // SAFETY: the pointer is to a live map value; one aligned word.
    unsafe { CLAIMS.get(key) }.map(|flow| flow.noticed)
}

/// See [`shunt_dataplane::Tables::claim`].
#[inline(always)]
pub(super) fn claim(key: &TupleKey, now: u64) {
    let _ = CLAIMS.insert(key, KernelFlow { noticed: now }, ANY);
}
