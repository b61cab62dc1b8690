//! The watched build tells what becomes of packets, with a copy of their first bytes, through a ring buffer.
//!
//! A verdict is noted where it is carried out, and told where its program returns, by a subprogram with a stack of its own. The agent
//! loads this build while somebody watches, for drops or for all packets: a word of read-only data says which, and by it the verifier
//! removes the rest. So packets that are not dropped cost a watcher of drops next to nothing.

use aya_ebpf::Global;
use aya_ebpf::bindings::{__sk_buff, BPF_RB_NO_WAKEUP, TC_ACT_SHOT, xdp_md};
use aya_ebpf::helpers::generated::{
    bpf_ktime_get_ns, bpf_ringbuf_output, bpf_skb_load_bytes, bpf_xdp_load_bytes,
};
use aya_ebpf::macros::map;
use aya_ebpf::maps::{Array, HashMap, PerCpuArray, RingBuf};
use shunt_dataplane::abi::watch::{
    MAX_SNAP, MAX_WATCHED_PORTS, VERDICT_BACK, VERDICT_DROP, WATCH_BUDGETS as BUDGETS, WATCH_INTERVAL,
    WATCHED_BYTES, Watch, WatchBudget, WatchedPacket, WatchedProgram, watch_budget,
};
use shunt_dataplane::{Delivery, Verdict, Way};

use crate::skb::Skb;

/// Whether packets are told that are not dropped. The agent loads the programs with either value.
#[used]
#[unsafe(no_mangle)]
static CAPTURING: Global<u32> = Global::new(0);

/// What is told. The agent writes it, and the programs read it.
#[map]
static WATCH: Array<Watch> = Array::with_max_entries(1, 0);

/// The interfaces that are watched, where not all are. The agent writes it, and the programs read it.
#[map]
static WATCHED_PORTS: HashMap<u32, u32> = HashMap::with_max_entries(MAX_WATCHED_PORTS, 0);

/// What each CPU has told, of each reason. The programs write it, and the agent reads it.
#[map]
static WATCH_BUDGETS: PerCpuArray<WatchBudget> = PerCpuArray::with_max_entries(BUDGETS, 0);

/// [`WatchedPacket`] and bytes. The programs write it, and the agent reads it.
#[map]
static WATCHED: RingBuf = RingBuf::with_byte_size(WATCHED_BYTES, 0);

/// The verdict of the packet that this CPU has at hand.
#[map]
static NOTES: PerCpuArray<Note> = PerCpuArray::with_max_entries(1, 0);

/// Where this CPU composes what it tells.
#[map]
static TELLING: PerCpuArray<Told> = PerCpuArray::with_max_entries(1, 0);

/// A verdict, until it is told.
#[repr(C)]
#[derive(Clone, Copy)]
struct Note {
    is_there: u32,
    verdict: u32,
    target: u32,
    reason: u32,
    bare: u32,
}

#[repr(C)]
struct Told {
    head: WatchedPacket,
    bytes: [u8; MAX_SNAP as usize],
}

/// Remembers a packet's verdict until its program returns.
#[inline(always)]
pub(crate) fn note<const KIND: u8>(packet: &Skb<KIND>, verdict: &Verdict) {
    note_as(verdict, u32::from(packet.is_headless()));
}

#[inline(always)]
fn note_as(verdict: &Verdict, bare: u32) {
    let is_dropped = matches!(verdict, Verdict::Drop(_) | Verdict::Deliver(Delivery { way: Way::Back, .. }));
    if CAPTURING.load() == 0 && !is_dropped {
        return;
    }
    let Some(note) = NOTES.get_ptr_mut(0) else { return };
    let (verdict, target, reason) = verdict.code();
    // SAFETY: the pointer is to this CPU's value, which nobody else has while this program runs.
    unsafe { *note = Note { is_there: 1, verdict, target, reason, bare } };
}

/// Tells what has become of a program's packet, if that is watched.
#[inline(always)]
pub(crate) fn tell(skb: *mut __sk_buff, action: i32, program: WatchedProgram) {
    if CAPTURING.load() == 0 && action != TC_ACT_SHOT && !program.answers_too_big() {
        return;
    }
    tell_packet(skb, program as u32);
}

/// A subprogram, with a stack of its own. Called by programs only.
#[inline(never)]
fn tell_packet(skb: *mut __sk_buff, program: u32) -> i32 {
    let Some(told) = telling() else { return 0 };
    let head = &mut told.head;
    // SAFETY: the kernel hands every classifier a valid `__sk_buff`.
    unsafe {
        head.ifindex = (*skb).ifindex;
        head.length = (*skb).len;
        head.tag = if (*skb).vlan_present == 0 { 0 } else { ((*skb).vlan_tci & 0xffff) | 1 << 16 };
        head.tag_protocol = (*skb).vlan_proto;
    }
    head.program = program;
    // SAFETY: the bytes are as many as are asked for.
    put(told, |bytes, count| unsafe { bpf_skb_load_bytes(skb.cast(), 0, bytes.cast(), count) == 0 });
    0
}

/// Tells what has become of a frame in a driver.
#[inline(always)]
pub(crate) fn tell_frame(frame: *mut xdp_md, length: u32, verdict: &Verdict) {
    note_as(verdict, 0);
    if CAPTURING.load() != 0 || matches!(verdict, Verdict::Drop(_)) {
        tell_in_driver(frame, length);
    }
}

#[inline(never)]
fn tell_in_driver(frame: *mut xdp_md, length: u32) -> i32 {
    let Some(told) = telling() else { return 0 };
    let head = &mut told.head;
    // SAFETY: the kernel hands every program of a driver a valid `xdp_md`.
    head.ifindex = unsafe { (*frame).ingress_ifindex };
    head.length = length;
    (head.tag, head.tag_protocol) = (0, 0);
    head.program = WatchedProgram::FromNic as u32;
    // SAFETY: the bytes are as many as are asked for.
    put(told, |bytes, count| unsafe { bpf_xdp_load_bytes(frame, 0, bytes.cast(), count) == 0 });
    0
}

/// Where this CPU composes what it tells. Verifier: not on the stack, of which some programs have none left.
#[inline(always)]
fn telling() -> Option<&'static mut Told> {
    // SAFETY: the pointer is to this CPU's value, which nobody else has while this program runs.
    TELLING.get_ptr_mut(0).map(|told| unsafe { &mut *told })
}

/// Takes the note, and puts it and the packet's bytes into the ring buffer.
#[inline(always)]
fn put(told: &mut Told, load: impl FnOnce(*mut u8, u32) -> bool) {
    let (Some(place), Some(watch)) = (NOTES.get_ptr_mut(0), WATCH.get(0)) else { return };
    // SAFETY: as in `note_as`.
    let note = unsafe { core::mem::replace(&mut (*place).is_there, 0) != 0 }.then_some(place);
    // SAFETY: as above.
    let Some(note) = note.map(|note| unsafe { &*note }) else { return };
    if watch.verdicts & (1 << (note.verdict & 31)) == 0 || !is_watched(watch, told.head.ifindex, note) {
        return;
    }
    // SAFETY: the helper only reads a clock.
    let now = unsafe { bpf_ktime_get_ns() };
    let Some(budget) = WATCH_BUDGETS.get_ptr_mut(watch_budget(note.verdict, note.reason)) else { return };
    // SAFETY: as in `note_as`.
    let budget = unsafe { &mut *budget };
    if !is_within(budget, now, watch.most) {
        return;
    }
    let wanted = told.head.length.min(watch.snap).min(MAX_SNAP);
    // Verifier: from 1 to all, whatever the compiler knows of it.
    let mut last = u64::from(wanted.wrapping_sub(1));
    // SAFETY: touches one register, and changes nothing in it that is not above the bound.
    unsafe { core::arch::asm!("{0} &= 16383", inout(reg) last, options(pure, nomem, nostack)) };
    let count = last as u32 + 1;
    let is_loaded = wanted != 0 && load((&raw mut told.bytes).cast(), count);
    let head = &mut told.head;
    (head.time, head.captured) = (now, if is_loaded { count } else { 0 });
    (head.verdict, head.target, head.reason, head.bare) = (note.verdict, note.target, note.reason, note.bare);
    let size = size_of::<WatchedPacket>() as u64 + u64::from(count);
    // SAFETY: the map is one, and so many bytes are behind the pointer.
    let put = unsafe {
        bpf_ringbuf_output(
            (&raw const WATCHED).cast_mut().cast(),
            (&raw mut *told).cast(),
            size,
            u64::from(BPF_RB_NO_WAKEUP),
        )
    };
    if put != 0 {
        budget.lost += 1;
    }
}

/// Whether the packet's interface is watched, or the one that it is delivered to.
#[inline(always)]
fn is_watched(watch: &Watch, here: u32, note: &Note) -> bool {
    watch.only_some == 0
        || WATCHED_PORTS.get_ptr(here).is_some()
        || (note.verdict > VERDICT_DROP && note.verdict != VERDICT_BACK && note.target != 0)
            && WATCHED_PORTS.get_ptr(note.target).is_some()
}

/// Takes one packet of this interval's budget.
#[inline(always)]
fn is_within(budget: &mut WatchBudget, now: u64, most: u32) -> bool {
    if now - budget.since >= WATCH_INTERVAL {
        budget.since = now;
        budget.told = 0;
    }
    if budget.told >= u64::from(most) {
        budget.left_out += 1;
        return false;
    }
    budget.told += 1;
    true
}
