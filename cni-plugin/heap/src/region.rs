//! The region that blocks are cut from, front to back. A page of it is made when it is first written to.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

/// In bytes: an ADD takes a tenth of it.
const LENGTH: usize = 1 << 20;

/// A page of the usual size. What is cut begins with one, so that a piece of two pages is two and not three. The region itself is not aligned like that:
/// then all that is not initialized would be, and no more of it lay in the page of what is.
const PAGE: usize = 4096;

#[repr(C, align(16))]
struct Region(UnsafeCell<[MaybeUninit<u8>; LENGTH]>);

// SAFETY: nobody looks at a part of it but who has cut it off, and that once.
unsafe impl Sync for Region {}

static REGION: Region = Region(UnsafeCell::new([MaybeUninit::uninit(); LENGTH]));

/// How many bytes of it were cut off, or wanted when there were no more.
static CUT: AtomicUsize = AtomicUsize::new(0);

/// Cuts so many bytes off, a multiple of what blocks are aligned to; none if there are not as many.
pub(crate) fn cut(bytes: usize) -> Option<NonNull<u8>> {
    let region = REGION.0.get().cast::<u8>();
    let first_page = region.addr().next_multiple_of(PAGE) - region.addr();
    let start = first_page + CUT.fetch_add(bytes, Ordering::Relaxed);
    if start.checked_add(bytes).is_none_or(|end| end > LENGTH) {
        return None;
    }
    // SAFETY: that is within.
    NonNull::new(unsafe { region.add(start) })
}

/// Whether a block was cut from it.
pub(crate) fn has(block: *const u8) -> bool {
    block.addr().wrapping_sub(REGION.0.get().addr()) < LENGTH
}
