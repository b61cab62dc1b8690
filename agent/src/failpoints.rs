//! Where the agent meets the world: every request to the kernel and every change of a file goes through [`pass`], and what
//! depends on the time asks [`now`]. That is where tests make things fail, or end the agent as `kill -9` would, and set the clock on.
//!
//! The agent's state belongs to one thread, and so does what a test has planned for it: nothing is handed down through the modules,
//! and tests do not meet each other. It is in every build, so that what is tested is what is shipped; there it is a look at a
//! variable of the thread's own beside a system call. Only code of the same process can plan anything: no flag, no variable of the
//! environment and no request can.

use std::cell::Cell;
use std::io;
use std::time::{Duration, Instant};

use nix::errno::Errno;

/// What the agent talks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failpoint {
    /// Links, addresses, qdiscs, rules, conntrack.
    Netlink,
    /// The state directory.
    Files,
    /// Maps, programs, links and their pins.
    Bpf,
}

/// What happens there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// One call is refused; later ones are not.
    Refused(Errno),
    /// This call and all later ones fail: nothing that the agent would still do is done.
    Death,
}

/// The fault of the call after the next `after` ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// At one failpoint; none means at any.
    pub failpoint: Option<Failpoint>,
    /// Calls there that go well.
    pub after: u32,
    /// What then happens.
    pub fault: Fault,
}

thread_local! {
    static PLAN: Cell<Option<Plan>> = const { Cell::new(None) };
    static STRUCK: Cell<bool> = const { Cell::new(false) };
    static AHEAD: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Plans a fault for this thread, in place of what was planned.
pub fn plan(plan: Plan) {
    shunt_netlink::failpoint::install(|| pass(Failpoint::Netlink));
    PLAN.set(Some(plan));
    STRUCK.set(false);
}

/// Ends what was planned. Whether a call has failed by it.
pub fn recall() -> bool {
    PLAN.set(None);
    STRUCK.replace(false)
}

/// Sets this thread's clock on.
pub fn advance(duration: Duration) {
    AHEAD.set(AHEAD.get() + duration);
}

/// The time, as this thread knows it.
pub(crate) fn now() -> Instant {
    Instant::now() + AHEAD.get()
}

/// To be called before each call at a failpoint.
///
/// # Errors
/// What is planned; in an agent that no test drives, none.
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
