//! Failpoints: every system call that changes the kernel or a file passes [`pass`], and every question for the time passes [`now`].
//!
//! Tests inject errors there, end the agent as `kill -9` would, and advance the clock. A plan is thread-local, as the agent's state is, so
//! that parallel tests do not interfere. Failpoints are in every build, so that the shipped code is the tested code; without a plan one
//! costs a read of a thread-local variable. Only code of the same process can set a plan.

use std::cell::Cell;
use std::io;
use std::time::{Duration, Instant};

use nix::errno::Errno;

/// A kind of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failpoint {
    /// Links, addresses, qdiscs, rules, conntrack.
    Netlink,
    /// The state directory.
    Files,
    /// Maps, programs, links and their pins.
    Bpf,
}

/// An injected error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// One call fails; later ones succeed.
    Refused(Errno),
    /// This call and all later ones fail, as after `kill -9`.
    Death,
}

/// A planned error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The kind of call; none means any.
    pub failpoint: Option<Failpoint>,
    /// Calls that succeed before.
    pub after: u32,
    /// The error.
    pub fault: Fault,
}

thread_local! {
    static PLAN: Cell<Option<Plan>> = const { Cell::new(None) };
    static STRUCK: Cell<bool> = const { Cell::new(false) };
    static AHEAD: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Sets this thread's plan.
pub fn plan(plan: Plan) {
    shunt_netlink::failpoint::install(|| pass(Failpoint::Netlink));
    PLAN.set(Some(plan));
    STRUCK.set(false);
}

/// Clears the plan. Returns whether a call has failed.
pub fn recall() -> bool {
    PLAN.set(None);
    STRUCK.replace(false)
}

/// Advances this thread's clock.
pub fn advance(duration: Duration) {
    AHEAD.set(AHEAD.get() + duration);
}

/// This thread's time.
pub(crate) fn now() -> Instant {
    Instant::now() + AHEAD.get()
}

/// Call this before each call of that kind.
///
/// # Errors
/// The planned error; none without a plan.
pub(crate) fn pass(failpoint: Failpoint) -> io::Result<()> {
    let Some(plan) = PLAN.get() else { return Ok(()) };
    if plan.failpoint.is_some_and(|planned| planned != failpoint) {
        return Ok(());
    }
    if plan.after > 0 {
        PLAN.set(Some(Plan { after: plan.after - 1, ..plan }));
        return Ok(());
    }
    STRUCK.set(true);
    match plan.fault {
        Fault::Refused(errno) => {
            PLAN.set(None);
            Err(errno.into())
        }
        Fault::Death => {
            PLAN.set(Some(Plan { failpoint: None, ..plan }));
            Err(Errno::EOWNERDEAD.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(calls: &[Failpoint]) -> Vec<bool> {
        calls.iter().map(|failpoint| pass(*failpoint).is_ok()).collect()
    }

    #[test]
    fn without_a_plan_everything_passes() {
        assert_eq!(outcomes(&[Failpoint::Files, Failpoint::Bpf, Failpoint::Netlink]), [true; 3]);
    }

    #[test]
    fn one_call_at_the_planned_seam_is_refused() {
        plan(Plan { failpoint: Some(Failpoint::Bpf), after: 1, fault: Fault::Refused(Errno::ENOSPC) });
        assert_eq!(outcomes(&[Failpoint::Files, Failpoint::Bpf, Failpoint::Netlink]), [true; 3]);
        assert_eq!(pass(Failpoint::Bpf).unwrap_err().raw_os_error(), Some(Errno::ENOSPC as i32));
        assert_eq!(outcomes(&[Failpoint::Bpf, Failpoint::Bpf]), [true; 2]);
        assert!(recall());
    }

    #[test]
    fn after_a_death_nothing_passes_any_more() {
        plan(Plan { failpoint: Some(Failpoint::Files), after: 0, fault: Fault::Death });
        assert_eq!(
            outcomes(&[Failpoint::Bpf, Failpoint::Files, Failpoint::Bpf, Failpoint::Netlink]),
            [true, false, false, false]
        );
        assert!(recall());
        assert_eq!(outcomes(&[Failpoint::Files]), [true]);
    }

    #[test]
    fn a_plan_that_is_recalled_in_time_did_nothing() {
        for fault in [Fault::Death, Fault::Refused(Errno::EIO)] {
            plan(Plan { failpoint: Some(Failpoint::Files), after: 0, fault });
            assert!(pass(Failpoint::Bpf).is_ok() && !recall() && pass(Failpoint::Files).is_ok());
        }
    }
}
