//! Points in time that two processes of a machine understand alike: milliseconds of `CLOCK_MONOTONIC`.
//!
//! Both have to be in one time namespace (time_namespaces(7)), as services and runtimes are unless they are told otherwise.

use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

/// Now.
pub fn now() -> u64 {
    // Every kernel has this clock.
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default();
    now.as_millis() as u64
}

/// Whether a deadline is over.
pub fn is_over(deadline: u64) -> bool {
    now() > deadline
}

/// A deadline of this process, for others.
pub(crate) fn shared(deadline: Instant) -> u64 {
    now() + deadline.saturating_duration_since(Instant::now()).as_millis() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_over_once_its_time_has_come_and_not_before() {
        assert!(!is_over(shared(Instant::now() + Duration::from_secs(5))));
        let deadline = shared(Instant::now() + Duration::from_millis(3));
        std::thread::sleep(Duration::from_millis(6));
        assert!(is_over(deadline));
    }
}
