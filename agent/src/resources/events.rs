//! Broadcasts events to subscribers. A slow subscriber loses the oldest events; the agent never waits.

#[cfg(feature = "kubernetes")]
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use shunt_agent_api::{AttachmentKey, BridgePort, Event, EventKind, Pod};
use tokio::sync::broadcast;
#[cfg(feature = "kubernetes")]
use tokio::sync::mpsc;

#[cfg(feature = "kubernetes")]
use super::notice::Notice;

/// Events that a subscriber may lag behind. An event takes about 200 bytes, once for all subscribers.
const BACKLOG: usize = 4096;

/// Notices that may wait to be written.
#[cfg(feature = "kubernetes")]
const NOTICES: usize = 256;

/// Subscribers at a time; each occupies a connection, of which a group's members have fewer.
const MAX_LISTENERS: usize = 64;

/// The event channel.
#[derive(Clone, Debug)]
pub(crate) struct Events {
    sender: broadcast::Sender<Event>,
    /// Who writes what users can cure.
    #[cfg(feature = "kubernetes")]
    notices: Arc<OnceLock<mpsc::Sender<Notice>>>,
    /// Of which trace what happens is a part.
    trace_id: Option<String>,
}

impl Default for Events {
    fn default() -> Self {
        Self {
            sender: broadcast::Sender::new(BACKLOG),
            #[cfg(feature = "kubernetes")]
            notices: Arc::default(),
            trace_id: None,
        }
    }
}

impl Events {
    /// Subscribes; none if there are too many subscribers.
    pub(crate) fn subscribe(&self) -> Option<broadcast::Receiver<Event>> {
        (self.sender.receiver_count() < MAX_LISTENERS).then(|| self.sender.subscribe())
    }

    /// Has notices sent there from now on. Only the first receiver gets any.
    #[cfg(feature = "kubernetes")]
    pub(crate) fn notices(&self) -> mpsc::Receiver<Notice> {
        let (sender, notices) = mpsc::channel(NOTICES);
        let _other = self.notices.set(sender);
        notices
    }

    /// Sends a notice, where somebody writes them. One that finds no room is dropped.
    #[cfg(feature = "kubernetes")]
    pub(crate) fn notify(&self, notice: impl FnOnce() -> Notice) {
        if let Some(sender) = self.notices.get()
            && sender.try_send(notice()).is_err()
        {
            tracing::debug!("a notice was dropped: too many of them wait");
        }
    }

    /// Has every event that is sent by this handle be of this trace from now on.
    pub(crate) fn set_trace(&mut self, trace_id: Option<String>) {
        self.trace_id = trace_id;
    }

    /// Sends an event of an interface.
    pub(crate) fn tell(&self, kind: EventKind, ifname: &str, detail: String) {
        self.send(|| Self::event(kind, Some(ifname), detail));
    }

    /// Sends an event of an attachment.
    pub(crate) fn tell_of(&self, kind: EventKind, port: &BridgePort, detail: String) {
        self.tell_at(kind, &port.key, port.pod.as_ref(), &port.host.name, detail);
    }

    /// The same on an interface that need not be the attachment's own.
    pub(crate) fn tell_at(
        &self,
        kind: EventKind,
        key: &AttachmentKey,
        pod: Option<&Pod>,
        ifname: &str,
        detail: String,
    ) {
        self.send(|| {
            let (namespace, pod) = Pod::names(pod);
            Event { key: Some(key.clone()), namespace, pod, ..Self::event(kind, Some(ifname), detail) }
        });
    }

    fn send(&self, event: impl FnOnce() -> Event) {
        if self.sender.receiver_count() > 0 {
            // The last subscriber may have left.
            let _nobody = self.sender.send(Event { trace_id: self.trace_id.clone(), ..event() });
        }
    }

    /// An event of this moment.
    pub(crate) fn event(kind: EventKind, ifname: Option<&str>, detail: String) -> Event {
        Event {
            time: humantime::format_rfc3339_millis(SystemTime::now()).to_string(),
            event: kind,
            key: None,
            namespace: String::new(),
            pod: String::new(),
            trace_id: None,
            host_ifname: ifname.filter(|name| !name.is_empty()).map(str::to_owned),
            detail,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_carries_the_time_in_utc_with_milliseconds() {
        let event = Events::event(EventKind::Repair, None, String::new());
        let time = humantime::parse_rfc3339(&event.time).unwrap();
        assert!(SystemTime::now().duration_since(time).unwrap().as_secs() < 60, "{}", event.time);
        assert_eq!((event.time.len(), event.time.ends_with('Z')), ("1970-01-01T00:00:00.000Z".len(), true));
    }

    #[test]
    fn a_listener_that_is_too_slow_misses_the_oldest_and_nobody_waits_for_it() {
        let events = Events::default();
        let mut slow = events.subscribe().unwrap();
        for number in 0..BACKLOG + 10 {
            events.tell(EventKind::Repair, "br0", number.to_string());
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
