//! Which events were written, so that one pod and reason has one a minute at most.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::resources::notice::{Notice, Reason};

/// No event is written again sooner.
const PAUSE: Duration = Duration::from_secs(60);

/// A series ends when nothing is added for so long (client-go's `finishTime`, tools/events/event_broadcaster.go).
const OVER: Duration = Duration::from_secs(360);

/// Pods and reasons that are remembered.
const MOST: usize = 1024;

/// What is to be done about a notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing for now; it is counted.
    Nothing,
    /// Another event.
    Create,
    /// The series of an event that is there.
    Series {
        /// Its name.
        name: String,
        /// How often it was noticed.
        count: u32,
    },
}

/// The events that were written last, by pod and reason.
///
/// Invariant: at most [`MOST`].
#[derive(Debug, Default)]
pub(super) struct Told(HashMap<(String, Reason), Event>);

#[derive(Debug)]
struct Event {
    name: String,
    count: u32,
    at: Instant,
}

impl Told {
    /// What is to be done about a notice at this time.
    pub(super) fn see(&mut self, notice: &Notice, now: Instant) -> Step {
        match self.0.get_mut(&key(notice)) {
            Some(known) if now.duration_since(known.at) < PAUSE => {
                known.count = known.count.saturating_add(1);
                Step::Nothing
            }
            Some(known) if now.duration_since(known.at) < OVER => {
                Step::Series { name: known.name.clone(), count: known.count.saturating_add(1) }
            }
            _ => Step::Create,
        }
    }

    /// It is done; `name` is that of a new event.
    pub(super) fn written(&mut self, notice: &Notice, name: Option<String>, now: Instant) {
        let key = key(notice);
        match (name, self.0.get_mut(&key)) {
            (None, Some(known)) => (known.count, known.at) = (known.count.saturating_add(1), now),
            (name, _) => {
                self.make_room(now);
                self.0.insert(key, Event { name: name.unwrap_or_default(), count: 1, at: now });
            }
        }
    }

    fn make_room(&mut self, now: Instant) {
        if self.0.len() < MOST {
            return;
        }
        self.0.retain(|_, known| now.duration_since(known.at) < OVER);
        while self.0.len() >= MOST {
            let oldest = self.0.iter().min_by_key(|(_, known)| known.at).map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { return };
            self.0.remove(&oldest);
        }
    }
}

fn key(notice: &Notice) -> (String, Reason) {
    (notice.pod.uid.clone(), notice.reason)
}

#[cfg(test)]
mod tests {
    use shunt_agent_api::Pod;

    use super::*;

    fn notice(uid: &str, reason: Reason) -> Notice {
        Notice { pod: Pod { uid: uid.into(), ..Pod::default() }, reason, note: String::new() }
    }

    #[test]
    fn a_pod_and_a_reason_have_one_event_a_minute_and_the_others_are_counted() {
        let (mut told, now) = (Told::default(), Instant::now());
        let after = |seconds| now + Duration::from_secs(seconds);
        let one = notice("a", Reason::BandwidthExceeded);
        assert_eq!(told.see(&one, now), Step::Create);
        told.written(&one, Some("a.1".into()), now);
        for second in 1..=3 {
            assert_eq!(told.see(&one, after(second)), Step::Nothing);
        }
        assert_eq!(told.see(&notice("a", Reason::HostPortTaken), after(4)), Step::Create);
        assert_eq!(told.see(&one, after(60)), Step::Series { name: "a.1".into(), count: 5 });
        told.written(&one, None, after(60));
        assert_eq!(told.see(&one, after(61)), Step::Nothing);
        assert_eq!(told.see(&one, after(120)), Step::Series { name: "a.1".into(), count: 7 });
        // A failed write is asked for again.
        assert_eq!(told.see(&one, after(121)), Step::Series { name: "a.1".into(), count: 7 });
        assert_eq!(told.see(&one, after(60 + 360)), Step::Create);
    }

    #[test]
    fn no_more_than_so_many_are_remembered() {
        let (mut told, now) = (Told::default(), Instant::now());
        for number in 0..2 * MOST {
            told.written(&notice(&number.to_string(), Reason::ClaimShared), Some(String::new()), now);
        }
        assert_eq!(told.0.len(), MOST);
    }
}
