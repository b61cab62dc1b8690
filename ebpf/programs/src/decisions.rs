//! The test build writes down what each program decided: `BPF_PROG_TEST_RUN` cannot see where a redirect goes.

use aya_ebpf::macros::map;
use aya_ebpf::maps::Array;
use dataplane::abi::Decision;
use dataplane::{Packet, Verdict};

use crate::context::Skb;

/// The last decision. The test build's programs write it, parity tests read it.
#[map]
static DECISIONS: Array<Decision> = Array::with_max_entries(1, 0);

/// Writes down a decision.
#[inline(always)]
pub(crate) fn record(packet: &Skb, verdict: &Verdict) {
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
