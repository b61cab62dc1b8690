//! The kernel's clocks, as the programs read them, and how long a thread has worked.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// Nanoseconds of a clock; 0 if it cannot be read.
pub(crate) fn nanoseconds(clock: ClockId) -> u64 {
    clock_gettime(clock).map_or(0, |now| now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}

/// Nanoseconds since the boot, with the time that the machine slept.
pub(crate) fn boot_time() -> u64 {
    nanoseconds(ClockId::CLOCK_BOOTTIME)
}

/// What this thread has had of a processor.
pub(crate) fn processor_time() -> Duration {
    Duration::from_nanos(nanoseconds(ClockId::CLOCK_THREAD_CPUTIME_ID))
}
