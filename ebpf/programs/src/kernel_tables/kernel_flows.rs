//! `KERNEL_FLOWS`, `INCOMING_FLOWS`, `CLAIMS` and `OWN_CLAIMS`: what is the kernel's.

use aya_ebpf::maps::LruHashMap;
use shunt_dataplane::abi::KernelFlow;
use shunt_dataplane::abi::translation::TupleKey;
use shunt_dataplane::tables::Claimant;

use super::update::ANY;
use crate::maps::{CLAIMS, OWN_CLAIMS};

/// When a flow was seen.
#[inline(always)]
pub(super) fn seen<K>(map: &LruHashMap<K, KernelFlow>, key: &K) -> Option<u64> {
    // SAFETY: the pointer is to a live map value; one aligned word.
    unsafe { map.get(key) }.map(|flow| flow.noticed)
}

/// Records a flow. An LRU map makes room; should it fail under contention, the flow's next packet records it again.
#[inline(always)]
pub(super) fn record<K>(map: &LruHashMap<K, KernelFlow>, key: &K, now: u64) {
    let _ = map.insert(key, KernelFlow { noticed: now }, ANY);
}

/// The map of somebody's claims.
#[inline(always)]
pub(super) fn claims(by: Claimant) -> &'static LruHashMap<TupleKey, KernelFlow> {
    match by {
        Claimant::Own => &OWN_CLAIMS,
        Claimant::Masqueraded => &CLAIMS,
    }
}
