//! How long this thread wants a processor for at a time, by its own word.
//!
//! Who wakes up takes the processor from whoever has it if it wants it for less time (`PREEMPT_SHORT`, kernel/sched/fair.c; Linux 6.12), and waits for it
//! otherwise, for milliseconds if need be. Nobody gets more or less of it by that. Older kernels pay no attention.
//!
//! This is a crate of its own because the kernel is asked by a call that no library has, which takes `unsafe`; the plugin and the agent forbid themselves any.

use std::mem::size_of;
use std::ptr::from_ref;

use nix::libc::{
    SCHED_BATCH, SCHED_OTHER, SYS_sched_getattr, SYS_sched_setattr, c_long, c_uint, pid_t, sched_attr,
    syscall,
};

/// In nanoseconds (`sched_runtime`, sched_setattr(2)); the kernel takes 0.1 to 100 ms.
const SHORT: u64 = 200_000;

/// Says of this thread that it wants a processor for a moment: somebody waits for it, and it has almost nothing to do. Where it has a policy that
/// knows no slices, or the kernel refuses, all is as it was.
pub fn take_short() {
    let Some(mut attributes) = attributes() else { return };
    if [SCHED_OTHER, SCHED_BATCH].contains(&attributes.sched_policy.cast_signed()) {
        attributes.sched_runtime = SHORT;
        set(&attributes);
    }
}

fn set(attributes: &sched_attr) {
    let this: pid_t = 0;
    // SAFETY: the kernel reads as much as they say that they have.
    let _refused: c_long = unsafe { syscall(SYS_sched_setattr, this, from_ref(attributes), 0 as c_uint) };
}

/// What the kernel knows of how this thread is scheduled.
fn attributes() -> Option<sched_attr> {
    let length = size_of::<sched_attr>() as c_uint;
    let mut attributes = sched_attr {
        size: length,
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    };
    let this: pid_t = 0;
    // SAFETY: the kernel writes no more than it is said that they have.
    let told: c_long = unsafe { syscall(SYS_sched_getattr, this, &raw mut attributes, length, 0 as c_uint) };
    (told == 0).then_some(attributes)
}

#[cfg(test)]
mod tests {
    use std::{fs, thread};

    use nix::libc::SCHED_IDLE;
    use shunt_lab::{Lacking, skip};

    use super::*;

    /// Whether the kernel pays attention (Linux 6.12).
    fn knows_slices() -> bool {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        let mut numbers = release.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
        (numbers.next(), numbers.next()) >= (Some(6), Some(12))
    }

    #[test]
    fn the_kernel_knows_what_a_thread_has_said_and_of_nobody_else() {
        if !knows_slices() {
            return skip(Lacking::Kernel("slices of a thread's own"));
        }
        let runtime = || attributes().unwrap().sched_runtime;
        let usual = runtime();
        thread::spawn(move || {
            assert_ne!(usual, 200_000);
            take_short();
            assert_eq!(runtime(), 200_000);
        })
        .join()
        .unwrap();
        assert_eq!(runtime(), usual);
    }

    #[test]
    fn a_thread_keeps_its_policy_and_how_nice_it_is() {
        thread::spawn(|| {
            let mut before = attributes().unwrap();
            before.sched_policy = SCHED_BATCH.cast_unsigned();
            before.sched_nice = 7;
            set(&before);
            take_short();
            let after = attributes().unwrap();
            assert_eq!((after.sched_policy, after.sched_nice), (before.sched_policy, 7));
            before.sched_policy = SCHED_IDLE.cast_unsigned();
            set(&before);
            let idle = attributes().unwrap();
            take_short();
            let after = attributes().unwrap();
            assert_eq!((after.sched_policy, after.sched_runtime), (idle.sched_policy, idle.sched_runtime));
        })
        .join()
        .unwrap();
    }
}
