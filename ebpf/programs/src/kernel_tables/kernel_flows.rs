//! `KERNEL_FLOWS` with `KERNEL_SHARES`, `INCOMING_FLOWS`, `CLAIMS` and `OWN_CLAIMS`: what is the kernel's.

use aya_ebpf::maps::LruHashMap;
use shunt_dataplane::abi::{KernelFlow, KernelShare, NO_SLOT};
use shunt_dataplane::abi::translation::TupleKey;
use shunt_dataplane::tables::Claimant;

use super::atomic;
use super::update::ANY;
use crate::maps::{CLAIMS, KERNEL_SHARES, OWN_CLAIMS};

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

/// See [`shunt_dataplane::Tables::kernel_share`].
#[inline(always)]
pub(super) fn share(slot: u32) -> Option<KernelShare> {
    KERNEL_SHARES.get(slot).copied()
}

/// See [`shunt_dataplane::Tables::count_kernel_flow`].
#[inline(always)]
pub(super) fn count(slot: u32) {
    for slot in [slot, NO_SLOT] {
        if let Some(share) = KERNEL_SHARES.get_ptr_mut(slot) {
            // SAFETY: the pointer is to a live map value, whose words are aligned; a signed word is added to as an unsigned one is.
            unsafe { atomic::add((&raw mut (*share).flows).cast(), 1) };
        }
    }
}

/// See [`shunt_dataplane::Tables::refuse_kernel_flow`].
#[inline(always)]
pub(super) fn refuse(slot: u32) {
    for slot in [slot, NO_SLOT] {
        if let Some(share) = KERNEL_SHARES.get_ptr_mut(slot) {
            // SAFETY: as above.
            unsafe { atomic::add(&raw mut (*share).refused, 1) };
        }
    }
}
