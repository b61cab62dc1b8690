//! The clock of flows.

use aya_ebpf::helpers::generated::bpf_ktime_get_boot_ns;

/// Nanoseconds of `CLOCK_BOOTTIME`.
#[inline(always)]
pub(super) fn boot_time() -> u64 {
    // SAFETY: the helper only reads a clock.
    unsafe { bpf_ktime_get_boot_ns() }
}
