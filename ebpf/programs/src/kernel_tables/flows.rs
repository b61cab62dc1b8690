//! `ASSURED`, `FLOWS` and `FRAGMENTS`: the state of translated connections.

use shunt_dataplane::abi::FlowKey;
use shunt_dataplane::abi::fragment::{FragmentKey, FragmentTranslation};
use shunt_dataplane::abi::translation::{TRANSLATION_NEAR, Translation, TupleKey};
use shunt_dataplane::nat::connection::{Direction, Fate, is_assured};
use shunt_dataplane::tables::{Followed, Inserted};
use shunt_dataplane::wire::address::Address;

use super::clock::boot_time;
use super::shares;
use super::update::ANY;
use crate::maps::{ASKED_TUPLE, ASSURED, FIRST_FRAGMENT, FLOWS, FLOWS_MADE, FRAGMENTS};

/// Update flags: only where there is no entry.
const NOEXIST: u64 = 1;

/// The errno of that.
const EEXIST: i64 = -17;

/// An entry, and whether it is assured.
#[inline(always)]
fn find(key: &TupleKey) -> Option<(*mut Translation, bool)> {
    match ASSURED.get_ptr_mut(key) {
        Some(entry) => Some((entry, true)),
        None => FLOWS.get_ptr_mut(key).map(|entry| (entry, false)),
    }
}

/// See [`shunt_dataplane::Tables::follow`].
#[inline(always)]
pub(super) fn follow(
    mine: &TupleKey,
    other: &mut TupleKey,
    packet: Option<&Followed>,
    judge: impl FnOnce(Direction, Direction) -> Fate,
) -> Option<Fate> {
    let (own, is_kept) = find(mine)?;
    // SAFETY: the pointer is to a live map value; `becomes` is written once, with the entry.
    (other.destination, other.destination_port) =
        unsafe { ((*own).becomes.source, (*own).becomes.source_port) };
    let (others, _) = find(other)?;
    // SAFETY: both are to live map values. Each direction's words are written by its own packets only, which reach
    // one CPU at a time but for moments; a lost update is a timestamp or a flag that the next packet writes again.
    unsafe {
        if !(*own).belongs_to(mine, &*others) {
            return None;
        }
        let fate = judge((*own).direction(), (*others).direction());
        if let (Fate::Continues, Some(packet)) = (fate, packet) {
            let shown = (*own).shown;
            (*own).advance(&*others, packet.step, packet.now);
            if (*own).answers(shown, &*others) {
                shares::pay_back((*own).slot(), (*own).side());
            }
            (*own).packets += 1;
            (*own).bytes += u64::from(packet.bytes);
            if is_assured(&*own, &*others, packet.now) != is_kept {
                settle((mine, &*own), (other, &*others), !is_kept);
            }
        }
        Some(fate)
    }
}

/// Moves both entries of a connection to the map where they belong. What stands in `FLOWS` is found behind `ASSURED`, so it stays there; a
/// connection that is too many for its container, as those may be that were opened at once, has nothing but that.
#[inline(always)]
fn settle(mine: (&TupleKey, &Translation), other: (&TupleKey, &Translation), is_assured: bool) {
    let slot = mine.1.slot();
    if is_assured {
        if shares::has_room(slot) && assure(other, slot) && !assure(mine, slot) {
            release(other.0, slot);
        }
        return;
    }
    // An LRU map makes room; should it fail under contention, the connection is one that has ended.
    let _ = write(other.0, other.1);
    let _ = write(mine.0, mine.1);
    release(other.0, slot);
    release(mine.0, slot);
}

/// Copies an entry to `ASSURED`. Whether it is there now: it may be full.
#[inline(always)]
fn assure((key, value): (&TupleKey, &Translation), slot: u32) -> bool {
    match ASSURED.insert(key, value, NOEXIST) {
        Ok(()) => {
            shares::count(slot, 1);
            true
        }
        Err(error) => i64::from(error) == EEXIST,
    }
}

/// Removes an entry of `ASSURED`.
#[inline(always)]
fn release(key: &TupleKey, slot: u32) {
    if ASSURED.remove(key).is_ok() {
        shares::count(slot, -1);
    }
}

/// See [`shunt_dataplane::Tables::answers_neighbor`]. The key is composed in a map: the stack is full.
#[inline(always)]
pub(super) fn answers_neighbor(flow: &FlowKey, source: Address) -> bool {
    let Some(asked) = ASKED_TUPLE.get_ptr_mut(0) else { return false };
    // SAFETY: the pointer is to this CPU's value, which nobody else has while this program runs; zeros make one, and the padding
    // stays zero.
    unsafe {
        let asked = &mut *asked;
        asked.domain = flow.bridge;
        asked.protocol = flow.protocol;
        if flow.low.is(source) {
            (asked.source, asked.source_port) = (flow.low, flow.low_port);
            (asked.destination, asked.destination_port) = (flow.high, flow.high_port);
        } else {
            (asked.source, asked.source_port) = (flow.high, flow.high_port);
            (asked.destination, asked.destination_port) = (flow.low, flow.low_port);
        }
        // By reference: a copy would be on the stack.
        let asked: &TupleKey = asked;
        find(asked).is_some_and(|(flow, _)| (*flow).flags & TRANSLATION_NEAR != 0)
    }
}

/// See [`shunt_dataplane::Tables::becomes`].
#[inline(always)]
pub(super) fn becomes(key: &TupleKey) -> Option<(TupleKey, u32)> {
    // SAFETY: the pointer is to a live map value; both are written once, with the entry.
    find(key).map(|(flow, _)| unsafe { ((*flow).becomes, (*flow).holder) })
}

/// See [`shunt_dataplane::Tables::insert_flow`].
#[inline(always)]
pub(super) fn insert(key: &TupleKey, value: &Translation) -> Inserted {
    if ASSURED.get_ptr(key).is_some() {
        return Inserted::Exists;
    }
    match FLOWS.insert(key, value, NOEXIST) {
        Ok(()) => {
            made(1);
            Inserted::New
        }
        Err(error) if i64::from(error) == EEXIST => Inserted::Exists,
        Err(_) => Inserted::Full,
    }
}

/// See [`shunt_dataplane::Tables::replace_flow`].
#[inline(always)]
pub(super) fn replace(key: &TupleKey, value: &Translation) -> bool {
    // Verifier: it is not counted off. The agent corrects that: an assured connection whose tuple begins another one is rare.
    let _ = ASSURED.remove(key);
    write(key, value)
}

/// Writes an entry of `FLOWS`, and counts it if it is new.
#[inline(always)]
fn write(key: &TupleKey, value: &Translation) -> bool {
    if FLOWS.insert(key, value, NOEXIST).is_ok() {
        made(1);
        return true;
    }
    FLOWS.insert(key, value, ANY).is_ok()
}

/// See [`shunt_dataplane::Tables::forget_flow`].
#[inline(always)]
pub(super) fn forget(key: &TupleKey) {
    // As in `replace`.
    let _ = ASSURED.remove(key);
    // It may have been evicted meanwhile.
    if FLOWS.remove(key).is_ok() {
        made(u64::MAX);
    }
}

/// See [`shunt_dataplane::Tables::remember_fragment`]. An entry is composed in a map: the stack is full.
#[inline(always)]
pub(super) fn remember_fragment(identification: [u16; 2], key: &TupleKey, becomes: &TupleKey) {
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
        value.seen = boot_time();
        // By reference: a copy would be on the stack.
        let (at, value): (&FragmentKey, &FragmentTranslation) = (at, value);
        // An LRU map makes room; should it fail under contention, the datagram is one that the network has lost.
        let _ = FRAGMENTS.insert(at, value, ANY);
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
