//! The stream of a watcher: it is made as fast as it is read.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use shunt_agent_api::{Event, EventKind};
use tokio::time::{Instant, sleep_until};
use tonic::Status;
use tonic::codegen::BoxStream;

use crate::event_log::{EventLog, Position, Told};
use crate::proto::v1;
use crate::shares::Permit;

struct Watcher {
    log: Arc<EventLog>,
    position: Position,
    /// Whether it has been told that it watches.
    is_told: bool,
    /// Until when its client waits; none: for ever.
    until: Option<Instant>,
    _place: Permit,
}

/// What is told from a position on, for as long as it is read, and `patience` lasts.
pub(crate) fn stream(
    log: Arc<EventLog>,
    position: Position,
    patience: Option<Duration>,
    place: Permit,
) -> BoxStream<v1::WatchResponse> {
    let until = patience.map(|patience| Instant::now() + patience);
    let watcher = Watcher { log, position, is_told: false, until, _place: place };
    Box::pin(stream::unfold(Some(watcher), |watcher| async move {
        let mut watcher = watcher?;
        match watcher.next().await {
            Ok(told) => Some((Ok(told?), Some(watcher))),
            Err(late) => Some((Err(late), None)),
        }
    }))
}

impl Watcher {
    /// None at the end.
    ///
    /// # Errors
    /// `DEADLINE_EXCEEDED`.
    async fn next(&mut self) -> Result<Option<v1::WatchResponse>, Status> {
        let until = self.until;
        let late = async {
            match until {
                Some(until) => sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        let told = tokio::select! {
            biased;
            () = late => return Err(Status::deadline_exceeded("the time that the client gave is over")),
            told = self.tell() => told,
        };
        let token = self.log.token(&self.position);
        Ok(told.map(|told| v1::WatchResponse { resume_token: token, ..told }))
    }

    async fn tell(&mut self) -> Option<v1::WatchResponse> {
        if std::mem::replace(&mut self.is_told, true) {
            self.log.next(&mut self.position).await.map(message)
        } else {
            Some(of_kind(v1::EventKind::Watching))
        }
    }
}

fn of_kind(kind: v1::EventKind) -> v1::WatchResponse {
    v1::WatchResponse { kind: kind.into(), ..v1::WatchResponse::default() }
}

fn message(told: Told) -> v1::WatchResponse {
    let event = match told {
        Told::Missed(missed) => {
            return v1::WatchResponse {
                missed: missed.unwrap_or_default(),
                ..of_kind(v1::EventKind::Missed)
            };
        }
        Told::Event(event) => *event,
    };
    let Event { time, event, key, namespace, pod, host_ifname, trace_id, detail } = event;
    let (network, attachment) = key.map_or_else(Default::default, |key| {
        (key.network, Some(v1::Attachment { container_id: key.container, ifname: key.ifname }))
    });
    v1::WatchResponse {
        time,
        network,
        attachment,
        pod_namespace: namespace,
        pod_name: pod,
        host_ifname: host_ifname.unwrap_or_default(),
        detail,
        trace_id: trace_id.unwrap_or_default(),
        ..of_kind(kind(event))
    }
}

fn kind(kind: EventKind) -> v1::EventKind {
    match kind {
        EventKind::Attach => v1::EventKind::Attached,
        EventKind::Detach => v1::EventKind::Detached,
        EventKind::Repair => v1::EventKind::Repaired,
        EventKind::LinkDown => v1::EventKind::LinkDown,
        EventKind::LinkUp => v1::EventKind::LinkUp,
        EventKind::ProgramLost => v1::EventKind::ProgramLost,
        EventKind::BridgeLost => v1::EventKind::BridgeLost,
        EventKind::LeaseTaken => v1::EventKind::LeaseTaken,
        EventKind::Claim => v1::EventKind::Claimed,
        EventKind::Capacity => v1::EventKind::CapacityChanged,
        EventKind::Lagged => v1::EventKind::Missed,
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt as _;
    use tokio::time::timeout;
    use tonic::Code;

    use super::*;
    use crate::shares::Bound;

    #[tokio::test(start_paused = true)]
    async fn a_watcher_s_deadline_ends_its_stream_and_gives_its_place_back() {
        const LONG: Duration = Duration::from_secs(3600);
        let (log, places) = (Arc::new(EventLog::new()), Bound::of(2, 2));
        let watch =
            |patience| stream(Arc::clone(&log), log.position("").unwrap(), patience, places.take(0).unwrap());
        let (mut short, mut endless) = (watch(Some(Duration::from_secs(5))), watch(None));
        for stream in [&mut short, &mut endless] {
            assert_eq!(stream.next().await.unwrap().unwrap().kind(), v1::EventKind::Watching);
        }
        assert_eq!(short.next().await.unwrap().unwrap_err().code(), Code::DeadlineExceeded);
        assert!(short.next().await.is_none());
        assert!(places.take(0).is_some());
        assert!(timeout(LONG, endless.next()).await.is_err());
    }
}
