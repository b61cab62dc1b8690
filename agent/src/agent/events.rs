//! Telling what happens to whoever listens. Nobody is waited for: a listener that is too slow misses the oldest.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use shunt_agent_api::{AttachmentKey, Event, EventKind};
use tokio::sync::broadcast;

/// Events that a listener may be behind. One is some 200 bytes, and kept once for all listeners.
const BACKLOG: usize = 4096;

/// Listeners at a time; they take connections that others need.
const MAX_LISTENERS: usize = 64;

/// Where the agent tells what happens.
#[derive(Clone, Debug)]
pub(crate) struct Events {
    sender: broadcast::Sender<Event>,
}

impl Default for Events {
    fn default() -> Self {
        Self { sender: broadcast::Sender::new(BACKLOG) }
    }
}

impl Events {
    /// Hears what happens from now on; none if enough others do already.
    pub(crate) fn subscribe(&self) -> Option<broadcast::Receiver<Event>> {
        (self.sender.receiver_count() < MAX_LISTENERS).then(|| self.sender.subscribe())
    }

    /// Tells what has just happened, to an attachment or on an interface of the node.
    pub(super) fn tell(&self, kind: EventKind, key: Option<&AttachmentKey>, ifname: &str, detail: String) {
        if self.sender.receiver_count() > 0 {
            // The last listener may have left meanwhile.
            let _nobody = self.sender.send(Self::event(kind, key, Some(ifname), detail));
        }
    }

    /// An event of this moment.
    pub(crate) fn event(
        kind: EventKind,
        key: Option<&AttachmentKey>,
        ifname: Option<&str>,
        detail: String,
    ) -> Event {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Event {
            time: rfc3339(since_1970),
            event: kind,
            key: key.cloned(),
            host_ifname: ifname.filter(|name| !name.is_empty()).map(str::to_owned),
            detail,
        }
    }
}

/// A time in UTC as RFC 3339 writes it, with milliseconds.
fn rfc3339(since_1970: Duration) -> String {
    let seconds = since_1970.as_secs();
    let (mut day, second) = (seconds / 86_400, seconds % 86_400);
    let mut year = 1970;
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if day < days {
            break;
        }
        day -= days;
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let milliseconds = since_1970.subsec_millis();
    format!("{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}.{milliseconds:03}Z", day + 1)
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_as_rfc_3339_has_it() {
        // By `date -u -d @SECONDS`.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199, "2024-02-29T23:59:59.000Z"),
            (1_767_225_599, "2025-12-31T23:59:59.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(Duration::from_secs(seconds)), text);
        }
        assert_eq!(rfc3339(Duration::from_millis(1_001)), "1970-01-01T00:00:01.001Z");
    }

    #[test]
    fn a_listener_that_is_too_slow_misses_the_oldest_and_nobody_waits_for_it() {
        let events = Events::default();
        let mut slow = events.subscribe().unwrap();
        for number in 0..BACKLOG + 10 {
            events.tell(EventKind::Repair, None, "br0", number.to_string());
        }
        assert_eq!(slow.try_recv(), Err(broadcast::error::TryRecvError::Lagged(10)));
        assert_eq!(slow.try_recv().unwrap().detail, "10");
    }

    #[test]
    fn there_are_never_more_listeners_than_allowed() {
        let events = Events::default();
        let mut listeners: Vec<_> = (0..MAX_LISTENERS).map(|_| events.subscribe().unwrap()).collect();
        assert!(events.subscribe().is_none());
        listeners.pop();
        assert!(events.subscribe().is_some());
    }
}
