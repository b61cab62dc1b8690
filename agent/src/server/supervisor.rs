//! What a service manager is told (sd_notify(3)). Without one nothing is told.

use sd_notify::NotifyState;

/// The agent serves.
pub(super) fn ready() {
    tell(&[NotifyState::Ready]);
}

/// The agent's thread has done something since the last time.
pub(super) fn alive() {
    tell(&[NotifyState::Watchdog]);
}

/// The agent leaves.
pub(super) fn leaving() {
    tell(&[NotifyState::Stopping]);
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(false, state) {
        tracing::debug!(%error, "the service manager was not told");
    }
}
