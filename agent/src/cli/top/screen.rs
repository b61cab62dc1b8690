//! What the screen shows and how it has been told to.

use std::time::Instant;

use super::rates::Readout;
use super::sample::Sample;
use super::selection::Selection;

/// The state between two drawings.
#[derive(Debug, Default)]
pub(super) struct Screen {
    pub(super) selection: Selection,
    /// Whether keys are letters of the filter.
    pub(super) is_typing: bool,
    /// Whether nothing is asked, and the figures stand still.
    pub(super) is_paused: bool,
    pub(super) shows_keys: bool,
    /// Ports above the first one that is shown.
    pub(super) offset: usize,
    /// Ports that have room, as last drawn.
    pub(super) page: usize,
    pub(super) readout: Option<Readout>,
    /// Why the agent did not answer when it was asked last.
    pub(super) failure: Option<String>,
    latest: Option<Sample>,
}

impl Screen {
    pub(super) fn new(selection: Selection) -> Self {
        Self { selection, ..Self::default() }
    }

    /// Takes what the agent has answered. A failure leaves the figures as they are.
    pub(super) fn take(&mut self, sample: Result<Sample, String>) {
        match sample {
            Ok(sample) => {
                self.readout = Some(Readout::between(self.latest.as_ref(), &sample));
                (self.latest, self.failure) = (Some(sample), None);
            }
            Err(failure) => self.failure = Some(failure),
        }
    }

    /// Seconds since the figures were read.
    pub(super) fn age(&self, now: Instant) -> Option<u64> {
        self.latest.as_ref().map(|sample| now.saturating_duration_since(sample.at).as_secs())
    }

    /// Moves through the ports, which are as many; the last page stays full.
    pub(super) fn scroll(&mut self, by: isize) {
        self.offset = self.offset.saturating_add_signed(by);
    }

    /// Holds the offset within the ports that are shown.
    pub(super) fn fit(&mut self, shown: usize, page: usize) {
        self.page = page;
        self.offset = self.offset.min(shown.saturating_sub(page));
    }
}
