//! The stream of a watcher: it is made as fast as it is read.

use std::sync::Arc;

use futures_util::stream;
use shunt_agent_api::{Event, EventKind};
use tokio::sync::OwnedSemaphorePermit;
use tonic::codegen::BoxStream;

use crate::event_log::{EventLog, Position, Told};
use crate::proto::v1;

struct Watcher {
    log: Arc<EventLog>,
    position: Position,
    /// Whether it has been told that it watches.
    is_told: bool,
    _place: OwnedSemaphorePermit,
}

/// What is told from a position on, for as long as it is read.
pub(crate) fn stream(
    log: Arc<EventLog>,
    position: Position,
    place: OwnedSemaphorePermit,
) -> BoxStream<v1::WatchResponse> {
    let watcher = Watcher { log, position, is_told: false, _place: place };
    Box::pin(stream::unfold(watcher, |mut watcher| async move {
        let told = if std::mem::replace(&mut watcher.is_told, true) {
            message(watcher.log.next(&mut watcher.position).await?)
        } else {
            of_kind(v1::EventKind::Watching)
        };
        let token = watcher.log.token(&watcher.position);
        Some((Ok(v1::WatchResponse { resume_token: token, ..told }), watcher))
    }))
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
