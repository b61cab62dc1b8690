//! `KERNEL_FLOWS` with `KERNEL_SHARES`, `INCOMING_FLOWS`, `CLAIMS` and `OWN_CLAIMS`: what is the kernel's.

use aya_ebpf::maps::LruHashMap;
use shunt_dataplane::abi::translation::TupleKey;
use shunt_dataplane::abi::{FlowKey, KernelFlow, KernelShare, NO_SLOT, PortKey, StationKey};
use shunt_dataplane::tables::{Claimant, KernelFlows};

use super::clock::boot_time;
use super::update::ANY;
use super::{KernelTables, atomic, marks};
use crate::maps::{CLAIMS, INCOMING_FLOWS, KERNEL_FLOWS, KERNEL_SHARES, OWN_CLAIMS};

impl KernelFlows for KernelTables {
    #[inline(always)]
    fn is_kernel_flow(&self, key: &FlowKey) -> bool {
        KERNEL_FLOWS.get_ptr(key).is_some()
    }

    #[inline(always)]
    fn record_kernel_flow(&self, key: &FlowKey) {
        record(&KERNEL_FLOWS, key, boot_time());
    }

    #[inline(always)]
    fn kernel_share(&self, slot: u32) -> Option<KernelShare> {
        KERNEL_SHARES.get(slot).copied()
    }

    #[inline(always)]
    fn count_kernel_flow(&self, slot: u32) {
        for slot in of_container_and_all(slot) {
            if let Some(share) = KERNEL_SHARES.get_ptr_mut(slot) {
                // SAFETY: the pointer is to a live map value, whose words are aligned; a signed word is added to as an unsigned one is.
                unsafe { atomic::add((&raw mut (*share).flows).cast(), 1) };
            }
        }
    }

    #[inline(always)]
    fn refuse_kernel_flow(&self, slot: u32) {
        for slot in of_container_and_all(slot) {
            if let Some(share) = KERNEL_SHARES.get_ptr_mut(slot) {
                // SAFETY: as above.
                unsafe { atomic::add(&raw mut (*share).refused, 1) };
            }
        }
    }

    #[inline(always)]
    fn put_apart(&self, port: &PortKey, station: &StationKey) {
        marks::apart(port, station);
    }

    #[inline(always)]
    fn incoming_flow(&self, key: &FlowKey) -> Option<u64> {
        seen(&INCOMING_FLOWS, key)
    }

    #[inline(always)]
    fn record_incoming_flow(&self, key: &FlowKey, now: u64) {
        record(&INCOMING_FLOWS, key, now);
    }

    #[inline(always)]
    fn claimed(&self, by: Claimant, key: &TupleKey) -> Option<u64> {
        seen(claims(by), key)
    }

    #[inline(always)]
    fn claim(&self, by: Claimant, key: &TupleKey, now: u64) {
        record(claims(by), key, now);
    }

    #[inline(always)]
    fn require_flow_lookup(&self, key: &PortKey) {
        marks::require_flow_lookup(key);
    }
}

/// The slots that count a flow: what is nobody's counts among all, once.
#[inline(always)]
fn of_container_and_all(slot: u32) -> impl Iterator<Item = u32> {
    [slot, NO_SLOT].into_iter().skip(usize::from(slot == NO_SLOT))
}

/// When a flow was seen.
#[inline(always)]
fn seen<K>(map: &LruHashMap<K, KernelFlow>, key: &K) -> Option<u64> {
    // SAFETY: the pointer is to a live map value; one aligned word.
    unsafe { map.get(key) }.map(|flow| flow.noticed)
}

/// Records a flow. An LRU map makes room; should it fail under contention, the flow's next packet records it again.
#[inline(always)]
fn record<K>(map: &LruHashMap<K, KernelFlow>, key: &K, now: u64) {
    let _ = map.insert(key, KernelFlow { noticed: now }, ANY);
}

/// The map of somebody's claims.
#[inline(always)]
fn claims(by: Claimant) -> &'static LruHashMap<TupleKey, KernelFlow> {
    match by {
        Claimant::Own => &OWN_CLAIMS,
        Claimant::Masqueraded => &CLAIMS,
    }
}
