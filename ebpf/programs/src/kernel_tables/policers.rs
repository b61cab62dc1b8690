//! `POLICERS`: the rates of limited ports.

use shunt_dataplane::abi::policer::Policer;

use super::atomic;
use crate::maps::POLICERS;

/// See [`shunt_dataplane::Tables::policer`].
#[inline(always)]
pub(super) fn policer(slot: u32) -> Option<Policer> {
    let policer = POLICERS.get_ptr(slot)?;
    // SAFETY: the pointer is to a live map value; `due` alone changes, and is one aligned word.
    Some(unsafe { *policer })
}

/// See [`shunt_dataplane::Tables::begin`].
#[inline(always)]
pub(super) fn begin(slot: u32, due: u64) {
    if let Some(policer) = POLICERS.get_ptr_mut(slot) {
        // SAFETY: the pointer is to a live map value; one aligned word.
        unsafe { (*policer).due = due };
    }
}

/// See [`shunt_dataplane::Tables::charge`].
#[inline(always)]
pub(super) fn charge(slot: u32, nanoseconds: u64) {
    if let Some(policer) = POLICERS.get_ptr_mut(slot) {
        // SAFETY: the pointer is to a live map value, whose `due` is an aligned word.
        unsafe { atomic::add(&raw mut (*policer).due, nanoseconds) };
    }
}
