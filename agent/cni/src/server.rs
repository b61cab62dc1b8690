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
use crate::gate::Gate;
use crate::locks::Locks;
use crate::networks::Networks;
use crate::services::{DescriptorError, Services};
use crate::settings::Settings;

/// Calls on one connection, of root and of a member of the group; and bytes of them that may wait unread.
const MAX_STREAMS: u32 = 1024;
const MAX_STREAMS_OF_MEMBERS: u32 = 64;
const CONNECTION_WINDOW: u32 = 256 << 10;
const STREAM_WINDOW: u32 = 64 << 10;
const MAX_HEADER: u32 = 32 << 10;

/// How often it is seen whether anybody is there, and how long that may take to answer.
const ALIVE: Duration = Duration::from_secs(60);
const SILENT: Duration = Duration::from_secs(20);

/// Places of root and of the group's members.
const PLACES: [usize; 2] = [32, 4];

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
            networks: Networks::in_directory(&settings.networks_dir),
            locks: Locks::default(),
            events: Arc::clone(&events),
            settings,
        };
        Ok(Self {
            events,
            services: Services::new(shared).await?,
            root: Gate::of([512, 2048, PLACES[0], 256, 64]),
            members: Gate::of([16, 64, PLACES[1], 16, 16]),
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
        let may_change = credentials.uid() == 0;
        if !may_change && !self.has_group {
            return tracing::debug!(user = credentials.uid(), "a client of the CNI service was refused");
        }
        let gate = if may_change { &self.root } else { &self.members };
        let Ok(place) = Arc::clone(&gate.connections).try_acquire_owned() else {
            return tracing::debug!(
                user = credentials.uid(),
                "a connection to the CNI service was one too many"
            );
        };
        let process = credentials.pid().and_then(|id| u32::try_from(id).ok());
        let caller = Caller { process, may_change };
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
            for (gate, most) in [&self.root, &self.members].into_iter().zip(PLACES) {
                let all = u32::try_from(most).unwrap_or_default();
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
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
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
