//! How long to wait before something is tried again.

use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, Instant};

/// The first wait, doubled with each that follows.
const FIRST: Duration = Duration::from_secs(1);

/// No wait is longer, but for the random part.
const LONGEST: Duration = Duration::from_secs(60);

/// Who has not had to wait for so long begins anew.
const FORGOTTEN: Duration = Duration::from_secs(120);

/// A conversation that lasted so long has worked; a shorter one is not begun anew at once.
const STEADY: Duration = Duration::from_secs(30);

/// Waits that double. Nodes that lost their server together do not come back together: each wait is up to a quarter
/// longer by chance.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    tries: u32,
    last: Option<Instant>,
}

impl Backoff {
    /// How long to wait now.
    pub(super) fn wait(&mut self) -> Duration {
        let now = Instant::now();
        if self.last.is_some_and(|last| now.duration_since(last) > FORGOTTEN) {
            self.reset();
        }
        let wait = FIRST.saturating_mul(1 << self.tries.min(16)).min(LONGEST);
        self.tries = self.tries.saturating_add(1);
        let chance = RandomState::new().hash_one(self.tries) % 256;
        let wait = wait + wait / 4 * u32::try_from(chance).unwrap_or_default() / 256;
        self.last = Some(now + wait);
        wait
    }

    /// The same, but for the first time there is no wait.
    pub(super) fn pause(&mut self) -> Duration {
        match self.last.filter(|last| last.elapsed() <= FORGOTTEN) {
            Some(_) => self.wait(),
            None => {
                self.tries = 0;
                self.last = Some(Instant::now());
                Duration::ZERO
            }
        }
    }

    /// How long to wait after a conversation that began at `begun`; none where a steady one has ended as it should.
    pub(super) fn after(&mut self, begun: Instant, is_well: bool) -> Option<Duration> {
        let is_steady = begun.elapsed() > STEADY;
        if is_steady {
            self.reset();
        }
        (!(is_steady && is_well)).then(|| self.wait())
    }

    /// What was tried has worked.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_begin_anew_after_success() {
        let mut backoff = Backoff::default();
        let waits: Vec<_> = (0..40).map(|_| backoff.wait()).collect();
        for (at, wait) in waits.iter().enumerate() {
            let least = FIRST.saturating_mul(1 << at.min(10)).min(LONGEST);
            assert!((least..=least + least / 4).contains(wait), "{at}: {wait:?}");
        }
        backoff.reset();
        assert!(backoff.wait() < FIRST * 2);
    }

    #[test]
    fn only_a_steady_conversation_that_ended_well_is_begun_anew_at_once() {
        let now = Instant::now();
        let Some(long_ago) = now.checked_sub(STEADY * 2) else { return };
        let mut backoff = Backoff::default();
        assert!(backoff.after(now, true).is_some() && backoff.after(now, false).is_some());
        assert_eq!(backoff.after(long_ago, true), None);
        assert!(
            backoff.after(long_ago, false).is_some_and(|wait| wait < FIRST * 2),
            "it is begun with the first wait"
        );
    }
}
