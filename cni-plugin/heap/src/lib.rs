//! The plugin's memory.
//!
//! A call takes a millisecond and asks for memory five hundred times, mostly for a few bytes and for a moment: a third of all that it executed
//! was Doug Lea's allocator and the lock around it. Here each thread keeps what was let go in lists by size, so that the next who asks for that size gets it, warm and
//! without a lock; what is new comes from one region of the program's own, of which a page costs nothing until it is written to. What is large,
//! strangely aligned or more than the region holds comes from Doug Lea's allocator as before.
//!
//! This is a crate of its own because an allocator takes `unsafe`, and the plugin forbids itself any.

mod pool;
mod region;
mod size;

use std::alloc::{GlobalAlloc, Layout};
use std::ptr::{NonNull, copy_nonoverlapping};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dlmalloc::Dlmalloc;
use size::Size;

/// The memory of all threads of the process.
pub struct Heap(Mutex<Dlmalloc>);

impl Heap {
    /// Nothing is asked of the kernel yet.
    pub const fn new() -> Self {
        Self(Mutex::new(Dlmalloc::new()))
    }

    /// The standard library's lock needs no memory of its own.
    fn locked(&self) -> MutexGuard<'_, Dlmalloc> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Heap {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: a block is as large and aligned as was asked for, nobody else's, and goes back to where it came from: to a list if it lies in the region,
// else to the allocator, which is given the size and the alignment that it was asked for with.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if let Some(block) = Size::of(layout).and_then(pool::take) {
            return block.as_ptr();
        }
        // SAFETY: any size and alignment may be asked for.
        unsafe { self.locked().malloc(layout.size(), layout.align()) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if let Some(block) = Size::of(layout).and_then(pool::take) {
            // SAFETY: it is that large.
            unsafe { block.write_bytes(0, layout.size()) };
            return block.as_ptr();
        }
        // SAFETY: as above.
        unsafe { self.locked().calloc(layout.size(), layout.align()) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if let (Some(start), Some(size)) =
            (NonNull::new(block).filter(|_| region::has(block)), Size::of(layout))
        {
            // SAFETY: it was taken from a pool, for this size, and its owner lets it go.
            return unsafe { pool::give_back(start, size) };
        }
        // SAFETY: the caller has it from here, with this layout.
        unsafe { self.locked().free(block, layout.size(), layout.align()) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !region::has(block) {
            // SAFETY: as above.
            return unsafe { self.locked().realloc(block, layout.size(), layout.align(), size) };
        }
        // SAFETY: the caller vouches for the size.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        if Size::of(wanted) == Size::of(layout) {
            return block;
        }
        // SAFETY: both are that large, and the new one is nobody else's. The old one is its owner's until then.
        unsafe {
            let moved = self.alloc(wanted);
            if !moved.is_null() {
                copy_nonoverlapping(block, moved, layout.size().min(size));
                self.dealloc(block, layout);
            }
            moved
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    /// Everything in these tests comes from it, the harness's own as well.
    #[global_allocator]
    static HEAP: Heap = Heap::new();

    /// A block that says what it is filled with until it is let go.
    struct Block {
        start: *mut u8,
        layout: Layout,
    }

    // SAFETY: nobody else has the memory.
    unsafe impl Send for Block {}

    impl Block {
        fn new(size: usize, align: usize, mark: u8) -> Self {
            let layout = Layout::from_size_align(size, align).unwrap();
            // SAFETY: no size here is 0.
            let start = unsafe { HEAP.alloc(layout) };
            assert!(!start.is_null() && start.addr().is_multiple_of(align), "{layout:?}");
            // SAFETY: the block is that large.
            unsafe { start.write_bytes(mark, size) };
            Self { start, layout }
        }

        fn bytes(&self) -> &[u8] {
            // SAFETY: the block is that large, and all of it was written.
            unsafe { std::slice::from_raw_parts(self.start, self.layout.size()) }
        }

        fn holds(&self, mark: u8) -> bool {
            self.bytes().iter().all(|byte| *byte == mark)
        }
    }

    impl Drop for Block {
        fn drop(&mut self) {
            // SAFETY: it is from this heap, with this layout.
            unsafe { HEAP.dealloc(self.start, self.layout) };
        }
    }

    #[test]
    fn blocks_are_aligned_and_nobody_elses() {
        let sizes = [1, 7, 24, 255, 4096, 40_000, 1 << 20];
        let kinds = sizes.iter().flat_map(|size| (0..13).map(move |power| (*size, 1_usize << power)));
        let blocks: Vec<_> = kinds
            .enumerate()
            .map(|(at, (size, align))| (at as u8, Block::new(size, align, at as u8)))
            .collect();
        assert!(blocks.iter().all(|(mark, block)| block.holds(*mark)));
    }

    #[test]
    fn a_block_keeps_what_it_holds_as_it_grows_and_shrinks() {
        for align in [1, 8, 64, 4096] {
            let mut block = Block::new(100, align, 7);
            for size in [101, 5000, 300_000, 60, 2_000_000, 60] {
                let kept = size.min(block.layout.size());
                // SAFETY: it is from this heap with this layout, and the size is not 0.
                block.start = unsafe { HEAP.realloc(block.start, block.layout, size) };
                block.layout = Layout::from_size_align(size, align).unwrap();
                assert!(block.start.addr().is_multiple_of(align));
                // SAFETY: the block is at least that large.
                let kept = unsafe { std::slice::from_raw_parts(block.start, kept) };
                assert!(kept.iter().all(|byte| *byte == 7), "{align} {size}");
                // SAFETY: the block is that large.
                unsafe { block.start.write_bytes(7, size) };
            }
        }
    }

    #[test]
    fn what_is_asked_for_empty_is_empty_where_others_have_written() {
        for size in [16, 1000, 100_000] {
            drop(Block::new(size, 8, 0xff));
            let layout = Layout::from_size_align(size, 8).unwrap();
            // SAFETY: the size is not 0.
            let start = unsafe { HEAP.alloc_zeroed(layout) };
            assert!(Block { start, layout }.holds(0), "{size}");
        }
    }

    #[test]
    fn threads_give_back_what_others_have_asked_for() {
        let (give, take) = mpsc::channel::<(u8, Block)>();
        thread::scope(|scope| {
            for seed in 0..4_u8 {
                let give = give.clone();
                scope.spawn(move || {
                    for round in 0..2000_usize {
                        let block = Block::new(1 + (round * 37 + usize::from(seed)) % 3000, 8, seed);
                        if give.send((seed, block)).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(give);
            assert_eq!(take.iter().filter(|(mark, block)| block.holds(*mark)).count(), 8000);
        });
    }
}
