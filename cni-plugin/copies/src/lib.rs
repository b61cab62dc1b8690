//! How the plugin copies memory: `memcpy` and `memmove`, in place of musl's.
//!
//! musl copies with `rep movsq` whatever the length, and byte by byte until that is aligned: 30 to 60 cycles for the processor to begin with. An ADD copies a thousand
//! times, 24 bytes as a rule. Here that is two loads and two stores, which may overlap.
//!
//! This is a crate of its own because it takes `unsafe`, which the plugin forbids itself; and because what it says must not be taken for a
//! call of what it is (`no_builtins`).

#![no_builtins]
#![cfg(target_arch = "x86_64")]
#![cfg_attr(not(any(target_env = "musl", test)), allow(dead_code, reason = "other C libraries copy well"))]

use core::arch::asm;
use core::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_storeu_si128};

/// What is longer is copied by the processor's own loop.
const SHORT: usize = 128;

/// `memcpy` (C11, 7.24.2.1).
///
/// # Safety
/// There are that many bytes at both, and what lies at `from` does not overlap with what is written.
#[cfg(all(target_env = "musl", not(test)))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, length: usize) -> *mut u8 {
    // SAFETY: the caller's.
    unsafe { copy(to, from, length) }
}

/// `memmove` (C11, 7.24.2.2).
///
/// # Safety
/// There are that many bytes at both.
#[cfg(all(target_env = "musl", not(test)))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, length: usize) -> *mut u8 {
    // SAFETY: the caller's.
    unsafe { copy_overlapping(to, from, length) }
}

/// Copies front to back, so that `to` may lie before what it overlaps with; up to [`SHORT`] bytes all at once, so that it may lie behind as well.
#[inline(always)]
unsafe fn copy(to: *mut u8, from: *const u8, length: usize) -> *mut u8 {
    // SAFETY: the caller vouches for that many bytes at both, of which each case copies some from the front and some from the back; all that is
    // read is read before anything is written, but in the loop, of which the caller knows.
    unsafe {
        match length {
            0 => {}
            1 => to.write(from.read()),
            2..4 => both_ends::<u16>(to, from, length),
            4..8 => both_ends::<u32>(to, from, length),
            8..16 => both_ends::<u64>(to, from, length),
            16..=32 => both_ends::<Vectors<1>>(to, from, length),
            33..=64 => both_ends::<Vectors<2>>(to, from, length),
            65..=SHORT => both_ends::<Vectors<4>>(to, from, length),
            _ => {
                let end = length - size_of::<__m128i>();
                let last = _mm_loadu_si128(from.add(end).cast());
                forwards(to, from, length / 8);
                _mm_storeu_si128(to.add(end).cast(), last);
            }
        }
    }
    to
}

/// Whichever lies before the other.
#[inline(always)]
unsafe fn copy_overlapping(to: *mut u8, from: *const u8, length: usize) -> *mut u8 {
    let is_behind = to.addr().wrapping_sub(from.addr()) < length;
    if length > SHORT && is_behind {
        // SAFETY: the caller vouches for that many bytes at both.
        unsafe { backwards(to, from, length) };
        return to;
    }
    // SAFETY: as above, and it does not lie behind what it overlaps with unless that is short.
    unsafe { copy(to, from, length) }
}

type Vectors<const COUNT: usize> = [__m128i; COUNT];

/// Reads as much as a `T` holds from the front and from the back, and writes both.
#[inline(always)]
unsafe fn both_ends<T: Copy>(to: *mut u8, from: *const u8, length: usize) {
    let back = length - size_of::<T>();
    // SAFETY: the caller vouches for that many bytes at both, and for as many as a `T` has at least.
    unsafe {
        let ends = (from.cast::<T>().read_unaligned(), from.add(back).cast::<T>().read_unaligned());
        to.cast::<T>().write_unaligned(ends.0);
        to.add(back).cast::<T>().write_unaligned(ends.1);
    }
}

/// Copies so many times eight bytes.
unsafe fn forwards(to: *mut u8, from: *const u8, words: usize) {
    // SAFETY: the caller vouches for them; the direction flag is clear wherever a function is called (System V ABI, 3.2.1).
    unsafe {
        asm!("rep movsq", inout("rcx") words => _, inout("rdi") to => _, inout("rsi") from => _,
            options(nostack, preserves_flags));
    }
}

/// Copies from the back, vector by vector; more bytes than a vector has.
unsafe fn backwards(to: *mut u8, from: *const u8, length: usize) {
    // SAFETY: the caller vouches for that many bytes at both; what is written lies behind all that is still to be read, but for the first
    // vector, which was read before.
    unsafe {
        let first = _mm_loadu_si128(from.cast());
        let mut end = length;
        while end > size_of::<__m128i>() {
            end -= size_of::<__m128i>();
            let vector = _mm_loadu_si128(from.add(end).cast());
            _mm_storeu_si128(to.add(end).cast(), vector);
        }
        _mm_storeu_si128(to.cast(), first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More than any of the ways that there are begins with.
    const LONGEST: usize = 3 * SHORT;

    fn numbered() -> Vec<u8> {
        (0..3 * LONGEST).map(|at| (at * 31 + at / 251) as u8).collect()
    }

    #[test]
    fn what_is_copied_is_that_and_nothing_beside_it() {
        let source = numbered();
        for length in 0..=LONGEST {
            for (from, to) in [(0, 0), (1, 0), (3, 7), (8, 5)] {
                let mut copied = vec![0xaa; 2 * LONGEST];
                // SAFETY: both are that long.
                let answered = unsafe { copy(copied[to..].as_mut_ptr(), source[from..].as_ptr(), length) };
                assert_eq!(answered, copied[to..].as_mut_ptr());
                assert_eq!(copied[to..to + length], source[from..from + length], "{length}");
                assert!(
                    copied[..to].iter().chain(&copied[to + length..]).all(|byte| *byte == 0xaa),
                    "{length}"
                );
            }
        }
    }

    #[test]
    fn what_overlaps_is_copied_as_it_was() {
        let steps = [0, 1, 2, 7, 8, 15, 16, 17, 31, 64, 127, 128, 129, 200];
        for length in 0..=LONGEST {
            for (from, to) in steps.iter().flat_map(|step| [(200, 200 + step), (200, 200 - step)]) {
                let (mut bytes, mut expected) = (numbered(), numbered());
                expected.copy_within(from..from + length, to);
                let start = bytes.as_mut_ptr();
                // SAFETY: both lie within.
                let answered = unsafe { copy_overlapping(start.add(to), start.add(from), length) };
                assert_eq!(answered, bytes[to..].as_mut_ptr());
                assert_eq!(bytes, expected, "{length} from {from} to {to}");
            }
        }
    }
}
