//! Connections, and how many calls are done at a time for whom.

use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use shunt_agent_api::Event;
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::arriving::Arriving;
use crate::asked::Shared;
use crate::cache::Cache;
use crate::caller::Caller;
use crate::event_log::EventLog;
use crate::gate::{Gate, Limits};
use crate::inbox::UNASKED;
use crate::locks::Locks;
use crate::networks::Networks;
use crate::services::{DescriptorError, MAX_MESSAGE, Services};
use crate::settings::Settings;

/// Calls on one connection, of root and of a member of the group.
const MAX_STREAMS: u32 = 1024;
const MAX_STREAMS_OF_MEMBERS: u32 = 64;

const MAX_HEADER: u32 = 32 << 10;

/// How often it is seen whether anybody is there, and how long that may take to answer.
const ALIVE: Duration = Duration::from_secs(60);
const SILENT: Duration = Duration::from_secs(20);

/// Root is one user.
const OF_ROOT: Limits = Limits {
    connections: [512, 512],
    calls: [2048, 2048],
    places: 32,
    parked: 256,
    watchers: [64, 64],
    message: MAX_MESSAGE,
};

/// Of the group's members. No user has more than half; their messages are names.
const OF_MEMBERS: Limits = Limits {
    connections: [16, 8],
    calls: [64, 32],
    places: 4,
    parked: 16,
    watchers: [16, 8],
    message: UNASKED as usize,
};

/// The service, for connections that somebody else accepts. All are ended when this is dropped.
#[derive(Debug)]
pub struct Server {
    services: Services,
    events: Arc<EventLog>,
    root: Gate,
    members: Gate,
    /// Whether others than root may ask.
    has_group: bool,
    connections: JoinSet<()>,
    /// Says that no new call is taken on any connection.
    leaving: watch::Sender<bool>,
}

impl Server {
    /// Opens nothing. With `has_group` a user other than root may ask, and change nothing: the socket's mode says who can connect.
    ///
    /// # Errors
    /// The descriptors of the messages cannot be read.
    pub async fn new(settings: Settings, has_group: bool) -> Result<Self, DescriptorError> {
        let events = Arc::new(EventLog::new());
        let shared = Shared {
            cache: Cache::in_directory(&settings.cache_dir),
            begun: Cache::of_begun(&settings.cache_dir),
            networks: Networks::in_directory(&settings.networks_dir),
            locks: Locks::default(),
            events: Arc::clone(&events),
            settings,
        };
        Ok(Self {
            events,
            services: Services::new(shared).await?,
            root: Gate::of(OF_ROOT),
            members: Gate::of(OF_MEMBERS),
            has_group,
            connections: JoinSet::new(),
            leaving: watch::channel(false).0,
        })
    }

    /// Tells watchers what has happened.
    pub fn tell(&self, event: Event) {
        self.events.tell(event);
    }

    /// Tells watchers that so many events have not come.
    pub fn tell_missing(&self, events: u64) {
        self.events.skip(events);
    }

    /// Serves a client beside the others; one too many is disconnected.
    pub fn welcome(&mut self, stream: UnixStream) {
        while self.connections.try_join_next().is_some() {}
        let Ok(credentials) = stream.peer_cred() else { return };
        let user = credentials.uid();
        let process = credentials.pid().and_then(|id| u32::try_from(id).ok());
        self.admit(stream, Caller { user, process, may_change: user == 0 });
    }

    fn admit(&mut self, stream: UnixStream, caller: Caller) {
        let Caller { user, may_change, .. } = caller;
        if !may_change && !self.has_group {
            return tracing::debug!(user, "a client of the CNI service was refused");
        }
        let gate = if may_change { &self.root } else { &self.members };
        let Some(place) = gate.connections.take(user) else {
            return tracing::debug!(user, "a connection to the CNI service was one too many");
        };
        let (services, gate, leaving) = (self.services.clone(), gate.clone(), self.leaving.subscribe());
        self.connections.spawn(async move {
            converse(stream, services, (gate, caller), leaving).await;
            drop(place);
        });
    }

    /// Takes no more calls, and ends the watchers' streams. Calls have half of `patience` to be answered; those that have not been are
    /// cancelled, and have the other half to be done, and undone where that follows.
    pub async fn leave(mut self, patience: Duration) {
        let _nobody = self.leaving.send(true);
        self.events.end();
        let answered = async { while self.connections.join_next().await.is_some() {} };
        let _late = timeout(patience / 2, answered).await;
        self.connections.shutdown().await;
        let idle = async {
            for (gate, limits) in [(&self.root, OF_ROOT), (&self.members, OF_MEMBERS)] {
                let all = u32::try_from(limits.places).unwrap_or_default();
                let _idle = gate.places.acquire_many(all).await;
            }
        };
        if timeout(patience / 2, idle).await.is_err() {
            tracing::warn!(
                "left in the middle of calls of CNI: their clients are to delete what they asked for"
            );
        }
    }
}

/// Serves a connection until either side ends it; once the service is `leaving`, until its calls are answered.
async fn converse(
    stream: UnixStream,
    services: Services,
    (gate, caller): (Gate, Caller),
    mut leaving: watch::Receiver<bool>,
) {
    let serving = service_fn(move |request| services.clone().call(request, gate.clone(), caller));
    let streams = if caller.may_change { MAX_STREAMS } else { MAX_STREAMS_OF_MEMBERS };
    let mut protocol = http2::Builder::new(TokioExecutor::new());
    protocol
        .timer(TokioTimer::new())
        .max_concurrent_streams(streams)
        .initial_stream_window_size(UNASKED)
        // So no number of streams that wait unread keeps the others of the connection from theirs.
        .initial_connection_window_size(streams * UNASKED)
        .max_header_list_size(MAX_HEADER)
        .keep_alive_interval(ALIVE)
        .keep_alive_timeout(SILENT);
    let connection = protocol.serve_connection(TokioIo::new(Arriving::new(stream)), serving);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = begins(&mut leaving) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection to the CNI service ended");
    }
}

async fn begins(leaving: &mut watch::Receiver<bool>) {
    let _or_gone = leaving.wait_for(|leaving| *leaving).await;
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
