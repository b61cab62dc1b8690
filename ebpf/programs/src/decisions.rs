//! The debug build records each decision, since `BPF_PROG_TEST_RUN` does not show where a redirect goes, and logs it through
//! aya-log. With an `AYA_LOG_LEVEL` of 0 the verifier removes the logging.

use aya_ebpf::bindings::__sk_buff;
use aya_ebpf::macros::map;
use aya_ebpf::maps::Array;
use aya_log_ebpf::debug;
use shunt_dataplane::Verdict;
use shunt_dataplane::abi::Decision;
use shunt_dataplane::wire::packet::Readable as _;

use crate::skb::Skb;

/// The last decision. The debug build's programs write it, parity tests read it.
#[map]
static DECISIONS: Array<Decision> = Array::with_max_entries(1, 0);

/// Records a decision.
#[inline(always)]
pub(crate) fn record<const KIND: u8>(packet: &Skb<KIND>, verdict: &Verdict) {
    let (code, target, reason) = verdict.code();
    let Some(decision) = DECISIONS.get_ptr_mut(0) else {
        return;
    };
    // SAFETY: the pointer is to a live map value, and a parity test runs one packet at a time.
    unsafe {
        let serial = (*decision).serial + 1;
        *decision = Decision {
            verdict: code,
            target,
            reason,
            unicast: packet.is_own() as u32,
            tag: packet.tag().map_or(0, |tag| u32::from(tag.tci()) | 1 << 16),
            copies: packet.digest(),
            serial,
        };
    }
}

/// Logs the last decision: the interface's index, then the fields of [`Decision`], in decimal.
///
/// A subprogram, with a stack of its own. Called by programs only, never by other subprograms: Linux 6.1 rounds each frame up to 32
/// bytes, and there is no room for three.
#[inline(never)]
pub(crate) fn say(skb: *mut __sk_buff) {
    let Some(decision) = DECISIONS.get_ptr(0) else {
        return;
    };
    // SAFETY: the first is the program's own context, the second a live map value.
    let (ifindex, Decision { verdict, target, reason, .. }) = unsafe { ((*skb).ifindex, *decision) };
    debug!((), "{} {} {} {}", ifindex, verdict, target, reason);
}
