//! Sets of processors.

use std::mem::{size_of, zeroed};

use nix::libc::{CPU_CLR, CPU_COUNT, CPU_SET, CPU_SETSIZE, cpu_set_t, sched_getaffinity};
use nix::sched::sched_getcpu;

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
    sched_getcpu().ok().filter(|here| *here < CPU_SETSIZE as usize)
}
