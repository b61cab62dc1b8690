//! The time between two samples.

use std::time::Duration;

use crate::cli::top::sample::Sample;

/// The time since an earlier sample.
#[derive(Debug)]
pub(super) struct Span<'a> {
    pub(super) earlier: &'a Sample,
    time: Duration,
}

impl<'a> Span<'a> {
    /// None where no time has passed.
    pub(super) fn between(earlier: &'a Sample, now: &Sample) -> Option<Self> {
        let time = now.at.duration_since(earlier.at);
        (!time.is_zero()).then_some(Self { earlier, time })
    }

    pub(super) fn seconds(&self) -> f64 {
        self.time.as_secs_f64()
    }

    /// What a counter has gained in a second; none where it has begun anew.
    pub(super) fn rate(&self, then: u64, now: u64) -> Option<f64> {
        Some(now.checked_sub(then)? as f64 / self.seconds())
    }
}
