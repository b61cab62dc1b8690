//! Atomic addition.

/// Adds to a word that other CPUs add to. Rust has no atomic addition for BPF; the machine has (RFC 9669, section 5.3).
#[inline(always)]
pub(super) unsafe fn add(word: *mut u64, more: u64) {
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
