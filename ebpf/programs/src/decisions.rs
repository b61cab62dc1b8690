//! The debug build writes down what each program decided, for `BPF_PROG_TEST_RUN` cannot see where a redirect goes, and says it
//! through aya-log to whoever looks for a mistake. With an `AYA_LOG_LEVEL` of 0 the verifier leaves the saying out.

use aya_ebpf::bindings::__sk_buff;
use aya_ebpf::macros::map;
use aya_ebpf::maps::Array;
use aya_log_ebpf::debug;
use shunt_dataplane::Verdict;
use shunt_dataplane::abi::Decision;
use shunt_dataplane::wire::packet::Readable as _;

use crate::context::Skb;

/// The last decision. The debug build's programs write it, parity tests read it.
#[map]
static DECISIONS: Array<Decision> = Array::with_max_entries(1, 0);

/// Writes down a decision.
#[inline(always)]
pub(crate) fn record<const KIND: u8>(packet: &Skb<KIND>, verdict: &Verdict) {
    let Some(decision) = DECISIONS.get_ptr_mut(0) else {
        return;
    };
    let (code, target, reason) = verdict.code();
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

/// Says what was written down last: the interface's index, then the decision as [`Decision`] has it, in decimal.
///
/// A subprogram: its stack is not the program's. Called by the programs only, and never by a function of theirs: Linux 6.1
/// rounds each frame up to 32 bytes, and there is no room for three.
#[inline(never)]
pub(crate) fn say(skb: *mut __sk_buff) {
    let Some(decision) = DECISIONS.get_ptr(0) else {
        return;
    };
    // SAFETY: the first is the program's own context, the second a live map value.
    let (ifindex, Decision { verdict, target, reason, .. }) = unsafe { ((*skb).ifindex, *decision) };
    debug!((), "{} {} {} {}", ifindex, verdict, target, reason);
}
