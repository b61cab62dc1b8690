//! What the agent remembers of who opens host ports.

use std::time::{Duration, Instant};

use super::harms::Harms;

/// How long the kernel is not asked again once it has refused our rules; each refusal doubles it, up to the longest.
const FIRST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(60);

/// Who opens host ports, and why.
#[derive(Debug, Default)]
pub(crate) struct Opening {
    /// Whether rules are asked for host ports at all (`filter_host_ports`).
    pub(super) is_asked: bool,
    /// Who has rules that may refuse or change something of what comes to host ports.
    pub(super) by: Vec<String>,
    /// What these rules do.
    pub(super) harms: Harms,
    /// The kernel's last refusal of our rules; then the programs open.
    pub(super) refused: Option<Refused>,
    /// Connections that the kernel may carry though it opens none any more; none while there are none.
    pub(super) carried: Option<Carried>,
    /// What the programs wait for before they open host ports again; none while nothing changes.
    pub(super) handover: Option<Handover>,
    /// The number of the last question about connections.
    pub(super) asked: u64,
}

/// Connections that the kernel has opened, and carries to their end.
#[derive(Debug)]
pub(super) struct Carried {
    /// Since when, or when it was last looked whether there are any.
    pub(super) at: Instant,
    /// The look that is under way.
    pub(super) look: Option<u64>,
}

impl Carried {
    /// From now on.
    pub(super) fn now() -> Self {
        Self { at: Instant::now(), look: None }
    }
}

/// How far it is that the programs open host ports again.
#[derive(Debug)]
pub(super) enum Handover {
    /// Datagrams that the kernel carries are being claimed, with this number, since then.
    Claiming(u64, Instant),
    /// They are claimed.
    Ready,
}

/// A refusal of the kernel's.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) why: String,
    at: Instant,
    /// How long the kernel is not asked again.
    pause: Duration,
}

impl Opening {
    /// Whether connections that the kernel has opened may live.
    pub(crate) fn carries(&self) -> bool {
        self.carried.is_some()
    }

    /// The number of another question about connections.
    pub(super) fn next(&mut self) -> u64 {
        self.asked += 1;
        self.asked
    }

    /// The kernel has taken our rules.
    pub(crate) fn grant(&mut self) {
        self.refused = None;
    }

    /// The kernel has not. The same refusal is said once.
    pub(super) fn refuse(&mut self, why: String, now: Instant) {
        let last = self.refused.take();
        if last.as_ref().is_none_or(|last| last.why != why) {
            tracing::warn!(
                error = why,
                "the kernel cannot open host ports: the programs do, past others' rules"
            );
        }
        let pause = last.map_or(FIRST, |last| (2 * last.pause).min(LONGEST));
        self.refused = Some(Refused { why, at: now, pause });
    }

    /// Whether the kernel has refused, and is not to be asked again yet: a module may be there by then, or whoever owned the table gone.
    pub(super) fn is_refused(&self, now: Instant) -> bool {
        self.refused.as_ref().is_some_and(|it| now.duration_since(it.at) < it.pause)
    }

    pub(super) fn forget(&mut self) {
        (self.by, self.harms) = (Vec::new(), Harms::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_asked_again_after_ever_longer_pauses_up_to_a_minute() {
        let (mut opening, mut now) = (Opening::default(), Instant::now());
        assert!(!opening.is_refused(now));
        for seconds in [5, 10, 20, 40, 60, 60] {
            opening.refuse("no such file or directory".to_owned(), now);
            let pause = Duration::from_secs(seconds);
            assert!(opening.is_refused(now + pause - Duration::from_millis(1)));
            now += pause;
            assert!(!opening.is_refused(now), "{seconds}");
        }
        opening.grant();
        opening.refuse("no such file or directory".to_owned(), now);
        assert!(!opening.is_refused(now + FIRST), "a later refusal is a first one");
    }
}
