//! Sets of processors.

use std::mem::{size_of, zeroed};
use std::ptr::null_mut;

use nix::libc::{
    CPU_CLR, CPU_COUNT, CPU_SET, CPU_SETSIZE, SYS_getcpu, c_uint, c_void, cpu_set_t, sched_getaffinity,
    syscall,
};

/// Where a thread may run.
pub(crate) struct Processors(cpu_set_t);

impl Processors {
    /// All on which this thread may run but the one on which it does; none if there is no other, or the kernel has more than a set holds.
    pub(crate) fn others() -> Option<Self> {
        let (mut set, here) = (empty(), current()?);
        // SAFETY: the kernel writes one set of this size.
        let told = unsafe { sched_getaffinity(0, size_of::<cpu_set_t>(), &mut set) };
        // SAFETY: the number was compared with the size of a set.
        unsafe { CPU_CLR(here, &mut set) };
        // SAFETY: it reads the set.
        (told == 0 && unsafe { CPU_COUNT(&set) } > 0).then_some(Self(set))
    }

    /// The one on which this thread runs.
    pub(crate) fn this() -> Option<Self> {
        let (mut set, here) = (empty(), current()?);
        // SAFETY: the number was compared with the size of a set.
        unsafe { CPU_SET(here, &mut set) };
        Some(Self(set))
    }

    pub(crate) fn as_raw(&self) -> &cpu_set_t {
        &self.0
    }
}

fn empty() -> cpu_set_t {
    // SAFETY: it is an array of bits, and all of them 0 is a set.
    unsafe { zeroed() }
}

fn current() -> Option<usize> {
    this_processor().filter(|here| *here < CPU_SETSIZE as usize)
}

/// The processor on which this thread runs, if the kernel says so. It is asked by a call: what the C library reads it from, without one, has to be
/// found and mapped first, which takes ten times as long where nobody asks twice.
pub fn this_processor() -> Option<usize> {
    let mut processor: c_uint = 0;
    // SAFETY: the kernel writes one number there, and none where it is given no place for it.
    let told = unsafe { syscall(SYS_getcpu, &raw mut processor, null_mut::<c_void>(), null_mut::<c_void>()) };
    (told == 0).then_some(processor as usize)
}
