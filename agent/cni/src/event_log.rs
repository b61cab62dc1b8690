//! What has happened, kept for a while: watchers read it at their own pace, and nobody waits for them.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use shunt_agent_api::Event;
use tokio::sync::watch;

/// Events that are kept: some 300 bytes each.
pub(crate) const MOST: usize = 4096;

/// The last events of this process, each with a number.
#[derive(Debug)]
pub(crate) struct EventLog {
    /// Tells this process's numbers from an earlier one's.
    epoch: u128,
    kept: Mutex<Kept>,
    /// Says that there is a new event, or that there will be none.
    news: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Kept {
    /// The number of the oldest event.
    first: u64,
    events: VecDeque<Event>,
    /// Whether this is the end.
    is_over: bool,
}

/// What a watcher is told next.
#[derive(Debug, PartialEq)]
pub(crate) enum Told {
    Event(Box<Event>),
    /// So many events are gone; none: nobody knows how many, for an earlier process had them.
    Missed(Option<u64>),
}

/// Where a watcher is.
#[derive(Debug)]
pub(crate) struct Position {
    /// The number of the next event.
    next: u64,
    /// Whether it comes from an earlier process.
    is_lost: bool,
    news: watch::Receiver<()>,
}

impl Kept {
    fn end(&self) -> u64 {
        self.first + u64::try_from(self.events.len()).unwrap_or_default()
    }
}

impl EventLog {
    pub(crate) fn new() -> Self {
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        Self { epoch, kept: Mutex::default(), news: watch::channel(()).0 }
    }

    pub(crate) fn tell(&self, event: Event) {
        let mut kept = self.kept();
        if kept.events.len() >= MOST {
            kept.events.pop_front();
            kept.first += 1;
        }
        kept.events.push_back(event);
        drop(kept);
        self.news.send_replace(());
    }

    /// So many events have not come.
    pub(crate) fn skip(&self, missing: u64) {
        let mut kept = self.kept();
        kept.first = kept.end() + missing;
        kept.events.clear();
        drop(kept);
        self.news.send_replace(());
    }

    /// Ends all watching: what was told is still heard.
    pub(crate) fn end(&self) {
        self.kept().is_over = true;
        self.news.send_replace(());
    }

    /// Where the token says, or at the end. None for what is no token.
    pub(crate) fn position(&self, token: &str) -> Option<Position> {
        let kept = self.kept();
        let (next, is_lost) = match token {
            "" => (kept.end(), false),
            token => {
                let (epoch, next) = token.split_once('.')?;
                let epoch = u128::from_str_radix(epoch, 16).ok()?;
                let next = next.parse().ok()?;
                if epoch == self.epoch && next <= kept.end() { (next, false) } else { (kept.first, true) }
            }
        };
        Some(Position { next, is_lost, news: self.news.subscribe() })
    }

    /// Names the place behind what was told last.
    pub(crate) fn token(&self, position: &Position) -> String {
        format!("{:x}.{}", self.epoch, position.next)
    }

    /// What is next, once there is something; none at the end.
    pub(crate) async fn next(&self, position: &mut Position) -> Option<Told> {
        loop {
            position.news.mark_unchanged();
            if let Some(told) = self.look(position) {
                return Some(told);
            }
            if self.kept().is_over || position.news.changed().await.is_err() {
                return None;
            }
        }
    }

    fn look(&self, position: &mut Position) -> Option<Told> {
        if std::mem::take(&mut position.is_lost) {
            return Some(Told::Missed(None));
        }
        let kept = self.kept();
        if let Some(missed) = kept.first.checked_sub(position.next).filter(|missed| *missed > 0) {
            position.next = kept.first;
            return Some(Told::Missed(Some(missed)));
        }
        let index = usize::try_from(position.next - kept.first).ok()?;
        let event = kept.events.get(index)?.clone();
        position.next += 1;
        Some(Told::Event(Box::new(event)))
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use shunt_agent_api::EventKind;
    use tokio::time::timeout;

    use super::*;

    fn event(number: usize) -> Event {
        Event {
            time: String::new(),
            event: EventKind::Repair,
            key: None,
            namespace: String::new(),
            pod: String::new(),
            host_ifname: None,
            trace_id: None,
            detail: number.to_string(),
        }
    }

    #[tokio::test]
    async fn a_watcher_hears_what_comes_and_resumes_where_it_was() {
        let log = EventLog::new();
        log.tell(event(0));
        let mut position = log.position("").unwrap();
        assert!(timeout(Duration::from_millis(10), log.next(&mut position)).await.is_err());
        log.tell(event(1));
        log.tell(event(2));
        assert_eq!(log.next(&mut position).await, Some(Told::Event(Box::new(event(1)))));
        let mut again = log.position(&log.token(&position)).unwrap();
        for position in [&mut position, &mut again] {
            assert_eq!(log.next(position).await, Some(Told::Event(Box::new(event(2)))));
        }
    }

    #[tokio::test]
    async fn one_that_is_too_slow_is_told_how_many_it_has_missed() {
        let log = EventLog::new();
        let mut slow = log.position("").unwrap();
        for number in 0..MOST + 10 {
            log.tell(event(number));
        }
        assert_eq!(log.next(&mut slow).await, Some(Told::Missed(Some(10))));
        assert_eq!(log.next(&mut slow).await, Some(Told::Event(Box::new(event(10)))));
        log.skip(5);
        log.tell(event(0));
        let missed = u64::try_from(MOST).unwrap() - 1 + 5;
        assert_eq!(log.next(&mut slow).await, Some(Told::Missed(Some(missed))));
        assert_eq!(log.next(&mut slow).await, Some(Told::Event(Box::new(event(0)))));
        assert!(log.kept().events.len() <= MOST);
    }

    #[tokio::test]
    async fn at_the_end_what_was_told_is_heard_and_nobody_waits() {
        let log = EventLog::new();
        let mut position = log.position("").unwrap();
        log.tell(event(0));
        log.end();
        assert_eq!(log.next(&mut position).await, Some(Told::Event(Box::new(event(0)))));
        assert_eq!(log.next(&mut position).await, None);
    }

    #[tokio::test]
    async fn a_token_of_an_earlier_process_says_that_something_is_missing() {
        let log = EventLog::new();
        log.tell(event(0));
        for token in ["1.7", "1.18446744073709551615"] {
            let mut position = log.position(token).unwrap();
            assert_eq!(log.next(&mut position).await, Some(Told::Missed(None)));
            assert_eq!(log.next(&mut position).await, Some(Told::Event(Box::new(event(0)))));
        }
        for token in [".", "x.1", "1", "1.-1", "1.1.1", "é"] {
            assert!(log.position(token).is_none(), "{token}");
        }
    }
}
