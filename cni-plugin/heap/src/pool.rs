//! What each thread has of the region: lists of what was let go, by size, and a piece that is still whole.
//!
//! A thread finds its pool by a pointer of its own, and no more than that: what the C library keeps for each thread has place for a dozen words, and
//! a mapping is made where there are more.

use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::region;
use super::size::{SIZES, Size};

/// How much a thread takes at a time for its smaller blocks, in bytes: two pages.
const PIECE: usize = 8 << 10;

/// What is larger is cut from the region by itself.
const SMALL: usize = PIECE / 4;

/// A block that nobody has; it holds the next of its list.
struct Idle(Option<NonNull<Idle>>);

/// One thread's.
struct Pool {
    idle: [Cell<Option<NonNull<Idle>>>; SIZES],
    /// Where what is left of the piece begins, and how much that is.
    piece: Cell<(Option<NonNull<u8>>, usize)>,
}

impl Pool {
    const fn new() -> Self {
        Self { idle: [const { Cell::new(None) }; SIZES], piece: Cell::new((None, 0)) }
    }
}

/// How many threads have a pool: the plugin has no more. The tests do.
const THREADS: usize = if cfg!(test) { 64 } else { 2 };

/// One for each. Who comes writes first and reads then: a page that is read first is made twice.
struct Pools {
    /// How many threads have come for one.
    comers: AtomicUsize,
    all: [Pool; THREADS],
}

// SAFETY: each is one thread's, and nobody else's ever.
unsafe impl Sync for Pools {}

static POOLS: Pools = Pools { comers: AtomicUsize::new(0), all: [const { Pool::new() }; THREADS] };

/// What a thread knows of its pool.
#[derive(Clone, Copy)]
enum Known {
    /// It has not come for one.
    Nothing,
    /// There was none left.
    None,
    One(&'static Pool),
}

thread_local! {
    // It has nothing to do when its thread ends, and so is there to the very last. What is in the pool then is lost.
    static KNOWN: Cell<Known> = const { Cell::new(Known::Nothing) };
}

/// This thread's pool.
fn pool() -> Option<&'static Pool> {
    match KNOWN.get() {
        Known::One(pool) => Some(pool),
        Known::None => None,
        Known::Nothing => {
            let pool = POOLS.all.get(POOLS.comers.fetch_add(1, Ordering::Relaxed));
            KNOWN.set(pool.map_or(Known::None, Known::One));
            pool
        }
    }
}

/// A block of this size; none where this thread has no pool, or there is no more in the region.
pub(crate) fn take(size: Size) -> Option<NonNull<u8>> {
    let pool = pool()?;
    pool.take_idle(size).or_else(|| pool.take_new(size.bytes()))
}

/// Takes a block back. Where this thread has no pool it is lost.
///
/// # Safety
/// It was [taken](take) as one of this size, by any thread, and is nobody's.
pub(crate) unsafe fn give_back(block: NonNull<u8>, size: Size) {
    let Some(pool) = pool() else { return };
    let (idle, list) = (block.cast::<Idle>(), &pool.idle[size.place()]);
    // SAFETY: the block is nobody's, aligned to 16 and has as many bytes at least.
    unsafe { idle.write(Idle(list.get())) };
    list.set(Some(idle));
}

impl Pool {
    fn take_idle(&self, size: Size) -> Option<NonNull<u8>> {
        let list = &self.idle[size.place()];
        let block = list.get()?;
        // SAFETY: what lies in a list was written as this, and is nobody's.
        list.set(unsafe { block.read() }.0);
        Some(block.cast())
    }

    fn take_new(&self, bytes: usize) -> Option<NonNull<u8>> {
        if bytes > SMALL {
            return region::cut(bytes);
        }
        let (start, left) = match self.piece.get() {
            (Some(start), left) if left >= bytes => (start, left),
            _ => (region::cut(PIECE)?, PIECE),
        };
        // SAFETY: there are as many behind its start, or one past the end.
        let rest = unsafe { start.add(bytes) };
        self.piece.set((Some(rest), left - bytes));
        Some(start)
    }
}
