//! The kernel's maps as [`Tables`].

use aya_ebpf::helpers::generated::{bpf_ktime_get_boot_ns, bpf_ktime_get_ns};
use dataplane::Tables;
use dataplane::abi::policer::Policer;
use dataplane::abi::{
    AddressKey, Count, DropKey, FlowKey, KernelFlow, Owner, PATH_ASK, PATH_FAST, Port, PortKey, Station,
    StationKey,
};
use dataplane::tables::Lane;

use crate::maps::{ADDRESSES, COUNTERS, DROPS, FDB, KERNEL_FLOWS, POLICERS, PORTS};

/// Update flags: create or overwrite.
const ANY: u64 = 0;

/// All maps; they are statics, so there is nothing in it.
pub(crate) struct KernelTables;

impl Tables for KernelTables {
    #[inline(always)]
    fn port(&self, key: &PortKey) -> Option<Port> {
        // SAFETY: an entry that is replaced meanwhile is read as a mixture at worst; the agent writes the whole entry
        // before traffic flows, and afterwards only single words of it change.
        unsafe { PORTS.get(key) }.copied()
    }

    #[inline(always)]
    fn station(&self, key: &StationKey) -> Option<Station> {
        // SAFETY: as in `port`.
        unsafe { FDB.get(key) }.copied()
    }

    #[inline(always)]
    fn owner(&self, key: &AddressKey) -> Option<Owner> {
        // SAFETY: as in `port`; one word.
        unsafe { ADDRESSES.get(key) }.copied()
    }

    #[inline(always)]
    fn is_kernel_flow(&self, key: &FlowKey) -> bool {
        KERNEL_FLOWS.get_ptr(key).is_some()
    }

    #[inline(always)]
    fn note_kernel_flow(&self, key: &FlowKey) {
        // SAFETY: the helper only reads a clock.
        let noticed = unsafe { bpf_ktime_get_boot_ns() };
        // An LRU map makes room; should it fail under contention, the flow's next packet notices it again.
        let _ = KERNEL_FLOWS.insert(key, KernelFlow { noticed }, ANY);
    }

    #[inline(always)]
    fn ask_from_now_on(&self, key: &PortKey) {
        if let Some(port) = PORTS.get_ptr_mut(key) {
            // SAFETY: the pointer is to a live map value; `asks` is one aligned word and only ever leaves
            // `PATH_FAST` here, so two writers cannot disagree.
            unsafe {
                if (*port).asks == PATH_FAST {
                    (*port).asks = PATH_ASK;
                }
            }
        }
    }

    #[inline(always)]
    fn policer(&self, slot: u32) -> Option<Policer> {
        let policer = POLICERS.get_ptr(slot)?;
        // SAFETY: as in `port`; `due` alone changes, and is one aligned word.
        Some(unsafe { *policer })
    }

    #[inline(always)]
    fn now(&self) -> u64 {
        // SAFETY: the helper only reads a clock.
        unsafe { bpf_ktime_get_ns() }
    }

    #[inline(always)]
    fn begin(&self, slot: u32, due: u64) {
        if let Some(policer) = POLICERS.get_ptr_mut(slot) {
            // SAFETY: the pointer is to a live map value; one aligned word.
            unsafe { (*policer).due = due };
        }
    }

    #[inline(always)]
    fn charge(&self, slot: u32, nanoseconds: u64) {
        if let Some(policer) = POLICERS.get_ptr_mut(slot) {
            // SAFETY: the pointer is to a live map value, whose `due` is an aligned word.
            unsafe { add_atomically(&raw mut (*policer).due, nanoseconds) };
        }
    }

    #[inline(always)]
    fn count(&self, slot: u32, lane: Lane, bytes: u32) {
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

    #[inline(always)]
    fn count_drop(&self, key: &DropKey, bytes: u32) {
        match DROPS.get_ptr_mut(key) {
            // SAFETY: as in `count`.
            Some(count) => add(unsafe { &mut *count }, bytes),
            None => {
                let _ = DROPS.insert(key, Count { packets: 1, bytes: u64::from(bytes) }, ANY);
            }
        }
    }
}

#[inline(always)]
fn add(count: &mut Count, bytes: u32) {
    count.packets += 1;
    count.bytes += u64::from(bytes);
}

/// Adds to a word that other CPUs add to. Rust has no atomic addition for BPF; the machine has (RFC 9669, section 5.3).
#[inline(always)]
unsafe fn add_atomically(word: *mut u64, more: u64) {
    // SAFETY: the caller's pointer is to a live, aligned word.
    #[cfg(target_arch = "bpf")]
    unsafe {
        core::arch::asm!("lock *(u64 *)({word} + 0) += {more}", word = in(reg) word, more = in(reg) more);
    }
    // On the host this is only linted.
    // SAFETY: as above.
    #[cfg(not(target_arch = "bpf"))]
    unsafe {
        *word += more;
    }
}
