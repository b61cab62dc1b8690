//! The kernel's maps as [`Tables`].

use aya_ebpf::bindings::__sk_buff;
use aya_ebpf::bindings::xdp_action::{XDP_PASS, XDP_REDIRECT};
use aya_ebpf::helpers::generated::{bpf_ktime_get_boot_ns, bpf_ktime_get_ns};
use aya_ebpf::maps::lpm_trie::Key;
use shunt_dataplane::Tables;
use shunt_dataplane::abi::fragment::{FragmentKey, FragmentTranslation};
use shunt_dataplane::abi::learning::{Learned, Learning};
use shunt_dataplane::abi::policer::{Policer, SUBNET_BITS, SubnetKey};
use shunt_dataplane::abi::translation::{
    LocalKey, Mapping, MappingKey, Masquerade, Outlet, Translation, TupleKey,
};
use shunt_dataplane::abi::vlan::{Member, MemberKey};
use shunt_dataplane::abi::{
    AddressKey, Count, DropKey, FlowKey, KernelFlow, Owner, PATH_ASK, PATH_FAST, Port, PortKey, Station,
    StationKey,
};
use shunt_dataplane::nat::connection::{Direction, Shown};
use shunt_dataplane::stages::learn::Heard;
use shunt_dataplane::tables::{Inserted, Lane, Route, RouteQuery};
use shunt_dataplane::wire::address::Address;

use crate::context::Skb;
use crate::maps::{
    ADDRESSES, COUNTERS, DROPS, FDB, FIRST_FRAGMENT, FLOWS, FLOWS_MADE, FRAGMENTS, KERNEL_FLOWS, LEARNED,
    LOCALS, MAPPINGS, MASQUERADES, MEMBERS, NICS, OUTLETS, POLICERS, PORTS, SUBNETS, TAGGED, UPLINKS,
};
use crate::{looping, neighbor, sockets_of_node};

/// Update flags: create or overwrite.
const ANY: u64 = 0;

/// Update flags: only where there is no entry.
const NOEXIST: u64 = 1;

/// The errno of that.
const EEXIST: i64 = -17;

/// All maps, which are statics, and the context, which the kernel's routes are asked with.
pub(crate) struct KernelTables {
    skb: *mut __sk_buff,
}

impl KernelTables {
    #[inline(always)]
    pub(crate) fn new<const KIND: u8>(packet: &Skb<KIND>) -> Self {
        Self { skb: packet.raw() }
    }

    /// For programs without a packet, which ask for no route.
    #[inline(always)]
    pub(crate) fn without_packet() -> Self {
        Self { skb: core::ptr::null_mut() }
    }
}

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
    fn learned(&self, key: &StationKey) -> Option<Learned> {
        // SAFETY: as in `port`.
        unsafe { LEARNED.get(key) }.copied()
    }

    #[inline(always)]
    fn learn(&self, key: &StationKey, value: &Learned) -> bool {
        LEARNED.insert(key, value, ANY).is_ok()
    }

    #[inline(always)]
    fn unlearn(&self, key: &StationKey) {
        // The agent may have been first.
        let _ = LEARNED.remove(key);
    }

    #[inline(always)]
    fn uplink(&self, key: &PortKey) -> Option<Learning> {
        // SAFETY: as in `port`.
        unsafe { UPLINKS.get(key) }.copied()
    }

    #[inline(always)]
    fn note_heard(&self, key: &PortKey, heard: Heard) {
        let Some(uplink) = UPLINKS.get_ptr_mut(key) else { return };
        // SAFETY: the pointer is to a live map value, whose counts are aligned words.
        unsafe {
            match heard {
                Heard::New => add_atomically(&raw mut (*uplink).held, 1),
                Heard::Refused => add_atomically(&raw mut (*uplink).refused, 1),
                Heard::Moved => add_atomically(&raw mut (*uplink).moved, 1),
                Heard::Again | Heard::Still => {}
            }
        }
    }

    #[inline(always)]
    fn takes(&self, ifindex: u32) -> bool {
        NICS.redirect(ifindex, u64::from(XDP_PASS)) == Ok(XDP_REDIRECT)
    }

    #[inline(always)]
    fn owner(&self, key: &AddressKey) -> Option<Owner> {
        // SAFETY: as in `port`; one word.
        unsafe { ADDRESSES.get(key) }.copied()
    }

    #[inline(always)]
    fn is_tagged(&self, key: &PortKey, vid: u16) -> bool {
        // SAFETY: as in `port`; one word of it.
        TAGGED.get_ptr(key).is_some_and(|vlans| unsafe { (*vlans).has(vid) })
    }

    #[inline(always)]
    fn member(&self, key: &MemberKey) -> Option<Member> {
        // SAFETY: as in `port`; one word.
        unsafe { MEMBERS.get(key) }.copied()
    }

    #[inline(always)]
    fn repeat(&self, times: u32, mut body: impl FnMut(u32) -> bool) {
        looping::each(times, &mut body);
    }

    #[inline(always)]
    fn is_kernel_flow(&self, key: &FlowKey) -> bool {
        KERNEL_FLOWS.get_ptr(key).is_some()
    }

    #[inline(always)]
    fn note_kernel_flow(&self, key: &FlowKey) {
        let noticed = self.boot_time();
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
    fn is_limited(&self, key: &SubnetKey) -> bool {
        SUBNETS.get(Key::new(SUBNET_BITS, *key)).is_none_or(|limited| *limited != 0)
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
    fn boot_time(&self) -> u64 {
        // SAFETY: the helper only reads a clock.
        unsafe { bpf_ktime_get_boot_ns() }
    }

    #[inline(always)]
    fn mapping(&self, key: &MappingKey) -> Option<Mapping> {
        // SAFETY: as in `port`.
        unsafe { MAPPINGS.get(key) }.copied()
    }

    #[inline(always)]
    fn is_local(&self, address: &Address) -> bool {
        LOCALS.get_ptr(LocalKey { address: *address }).is_some()
    }

    #[inline(always)]
    fn follow<R>(
        &self,
        mine: &TupleKey,
        other: &mut TupleKey,
        bytes: u32,
        judge: impl FnOnce(Direction, Direction) -> (R, Option<Direction>),
    ) -> Option<R> {
        let mine = FLOWS.get_ptr_mut(mine)?;
        // SAFETY: the pointer is to a live map value; `becomes` is written once, with the entry.
        other.destination_port = unsafe { (*mine).becomes.source_port };
        let other = FLOWS.get_ptr(*other)?;
        // SAFETY: both are to live map values. Each direction's words are written by its own packets only, which reach
        // one CPU at a time but for moments; a lost update is a timestamp or a flag that the next packet writes again.
        unsafe {
            if (*mine).begun != (*other).begun {
                return None;
            }
            let (result, after) = judge(direction(mine), direction(other));
            if let Some(Direction { shown, touched }) = after {
                (*mine).shown = shown.0;
                (*mine).touched = touched;
                (*mine).packets += 1;
                (*mine).bytes += u64::from(bytes);
            }
            Some(result)
        }
    }

    #[inline(always)]
    fn becomes(&self, key: &TupleKey) -> Option<(TupleKey, u32)> {
        // SAFETY: as in `port`; both are written once, with the entry.
        unsafe { FLOWS.get(key) }.map(|flow| (flow.becomes, flow.holder))
    }

    #[inline(always)]
    fn masquerade(&self, key: &AddressKey) -> Option<Masquerade> {
        // SAFETY: as in `port`.
        unsafe { MASQUERADES.get(key) }.copied()
    }

    #[inline(always)]
    fn outlet(&self, key: &PortKey) -> Option<Outlet> {
        // SAFETY: as in `port`.
        unsafe { OUTLETS.get(key) }.copied()
    }

    #[inline(always)]
    fn is_spoken_for(&self, tuple: &TupleKey) -> bool {
        sockets_of_node::would_take(self.skb, tuple)
    }

    #[inline(always)]
    fn insert_flow(&self, key: &TupleKey, value: &Translation) -> Inserted {
        match FLOWS.insert(key, value, NOEXIST) {
            Ok(()) => {
                made(1);
                Inserted::New
            }
            Err(error) if i64::from(error) == EEXIST => Inserted::Exists,
            Err(_) => Inserted::Full,
        }
    }

    #[inline(always)]
    fn replace_flow(&self, key: &TupleKey, value: &Translation) -> bool {
        if FLOWS.insert(key, value, NOEXIST).is_ok() {
            made(1);
            return true;
        }
        FLOWS.insert(key, value, ANY).is_ok()
    }

    #[inline(always)]
    fn forget_flow(&self, key: &TupleKey) {
        // It may have been evicted meanwhile.
        if FLOWS.remove(key).is_ok() {
            made(u64::MAX);
        }
    }

    /// Nothing of it on the stack, which is full: an entry is made in the memory of a map.
    #[inline(always)]
    fn remember_fragment(&self, identification: [u16; 2], key: &TupleKey, becomes: &TupleKey) {
        let Some(first) = FIRST_FRAGMENT.get_ptr_mut(0) else { return };
        // SAFETY: the pointer is to this CPU's value, which nobody else has while this program runs; zeros make one, and the padding
        // stays zero.
        unsafe {
            let (at, value) = &mut *first;
            at.domain = key.domain;
            at.identification = identification;
            at.source = key.source;
            at.destination = key.destination;
            at.protocol = key.protocol;
            value.source = becomes.source;
            value.destination = becomes.destination;
            value.domain = becomes.domain;
            value.seen = self.boot_time();
            // By reference: a copy would be on the stack.
            let (at, value): (&FragmentKey, &FragmentTranslation) = (at, value);
            // An LRU map makes room; should it fail under contention, the datagram is one that the network has lost.
            let _ = FRAGMENTS.insert(at, value, ANY);
        }
    }

    #[inline(always)]
    fn fragment(&self, key: &FragmentKey) -> Option<FragmentTranslation> {
        // SAFETY: as in `port`.
        unsafe { FRAGMENTS.get(key) }.copied()
    }

    #[inline(always)]
    fn route(&self, query: &RouteQuery) -> Option<Route> {
        neighbor::route(self.skb, query)
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

/// Counts entries of `FLOWS`; `u64::MAX` is one less. Verifier: no function of its own, for Linux 6.1 would count 32 bytes of
/// stack for it, and with those of its callers these are more than 512.
#[inline(always)]
fn made(entries: u64) {
    if let Some(count) = FLOWS_MADE.get_ptr_mut(0) {
        // SAFETY: the pointer is to this CPU's value, which no other program on this CPU interrupts.
        unsafe { *count = (*count).wrapping_add(entries) };
    }
}

#[inline(always)]
fn add(count: &mut Count, bytes: u32) {
    count.packets += 1;
    count.bytes += u64::from(bytes);
}

/// # Safety
/// `flow` is to a live map value.
#[inline(always)]
unsafe fn direction(flow: *const Translation) -> Direction {
    // SAFETY: the caller's word.
    unsafe { Direction { shown: Shown((*flow).shown), touched: (*flow).touched } }
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
