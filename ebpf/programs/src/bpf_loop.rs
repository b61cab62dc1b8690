//! Loops by the kernel (`bpf_loop`, Linux 5.17).

use core::ffi::c_void;

use aya_ebpf::helpers::generated::bpf_loop;

/// Calls `body` with 0, 1 and so on, at most `times` times, until it returns false. Verifier: such a loop is walked once.
#[inline(always)]
pub(crate) fn each<F: FnMut(u32) -> bool>(times: u32, body: &mut F) {
    let callback = turn::<F> as *mut c_void;
    // SAFETY: the helper calls `turn::<F>` with the pointer to `body`, which outlives it.
    unsafe { bpf_loop(times, callback, core::ptr::from_mut(body).cast(), 0) };
}

/// One turn; 1 ends the loop.
unsafe extern "C" fn turn<F: FnMut(u32) -> bool>(turn: u32, body: *mut c_void) -> i64 {
    // SAFETY: `each` is the one that hands it over, and nobody else has it meanwhile.
    let body = unsafe { &mut *body.cast::<F>() };
    i64::from(!body(turn))
}
