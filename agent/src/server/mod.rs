//! The agent as a process: its socket, its thread, what it hears from the kernel, and how it ends.
//!
//! The agent's state belongs to one thread ([`core`]). Connections are served by a single-threaded runtime beside it, so that a
//! slow client delays no other; a third thread listens to the kernel ([`Monitor`]). On SIGTERM or SIGINT the process leaves; programs, maps
//! and links stay and go on serving.

mod connection;
mod listener;
mod monitor;
mod previous_version;
mod read_error;
mod request;
mod subscription;
mod supervisor;
mod wire;

use std::io;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

pub use listener::{Listener, ListenerError};

use self::monitor::Monitor;
use crate::agent::{Core, CoreError, PreviousState};
use crate::capacity::slice::NodeNameError;
use crate::config::Config;
#[cfg(feature = "kubernetes")]
use crate::kubernetes::Publisher;
use crate::metrics::{Metrics, MetricsError};

/// Connections at a time. Others are told to come back.
const MAX_CONNECTIONS: usize = 512;

/// How long the agent waits after it could not accept a connection, most likely for lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How long requests that were begun may take when the agent ends.
const FAREWELL: Duration = Duration::from_secs(3);

/// How often the agent looks for what nobody tells it.
const HOUSEKEEPING: Duration = Duration::from_secs(1);

/// Why the agent does not run.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The socket.
    #[error(transparent)]
    Listener(#[from] ListenerError),
    /// State or kernel.
    #[error(transparent)]
    Core(#[from] CoreError),
    /// The address for metrics.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// The node's name in Kubernetes.
    #[error(transparent)]
    Kubernetes(#[from] NodeNameError),
    /// Netlink or signals.
    #[error("{what}: {source}")]
    Io {
        /// What was wanted.
        what: &'static str,
        /// The kernel's word.
        source: io::Error,
    },
}

fn failed(what: &'static str) -> impl FnOnce(io::Error) -> ServerError {
    move |source| ServerError::Io { what, source }
}

/// Runs the agent until it is asked to end.
///
/// # Errors
/// [`ServerError`]: it could not start, or lost what it lives on.
pub async fn run(config: Config) -> Result<(), ServerError> {
    Listener::refuse_taken(&config.socket)?;
    // Before anybody can ask: see there.
    let previous_state =
        PreviousState::take(&config.state_dir).map_err(|error| CoreError::Open(error.into()))?;
    let mut listener = Listener::bind(&config.socket, config.group.as_deref())?;
    let group = config.group.clone();
    let has_readers = config.group.is_some();
    let metrics = match config.metrics {
        Some(address) => Some(Metrics::bind(address).await?),
        None => None,
    };
    // Before the links are read for the first time: what changes meanwhile waits here.
    let mut monitor = Monitor::open().map_err(failed("link events"))?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed("SIGTERM"))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed("SIGINT"))?;
    let mut hang_up = signal(SignalKind::hangup()).map_err(failed("SIGHUP"))?;
    #[cfg(feature = "kubernetes")]
    let publisher = config.kubernetes.clone().map(Publisher::new).transpose()?;
    let (core, mut ended) = Core::start(config, previous_state).await?;
    tracing::info!(socket = %listener.path().display(), "serving");
    supervisor::ready();

    let mut telling = JoinSet::new();
    if let Some(metrics) = metrics {
        telling.spawn(metrics.serve(core.clone()));
    }
    #[cfg(feature = "kubernetes")]
    if let Some(publisher) = publisher {
        let publishing = publisher.run(core.clone());
        telling.spawn(async { match publishing.await {} });
    }
    let places = Semaphore::const_new(MAX_CONNECTIONS);
    let places = std::sync::Arc::new(places);
    let (stop, stopping) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut housekeeping = tokio::time::interval(HOUSEKEEPING);
    housekeeping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let outcome = loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(client) => {
                    let place = std::sync::Arc::clone(&places).try_acquire_owned().ok();
                    connections.spawn(connection::serve(client, has_readers, core.clone(), stopping.clone(), place));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            events = monitor.next() => match events {
                Ok(events) => core.follow(events).await,
                Err(source) => break Err(failed("link events")(source)),
            },
            Some(_) = connections.join_next() => {}
            _ = housekeeping.tick() => {
                if core.has_worked() {
                    supervisor::alive();
                }
                core.tick();
                if listener.is_lost() {
                    listen_again(&mut listener, group.as_deref());
                }
            }
            _ = hang_up.recv() => tracing::info!("SIGHUP does nothing: the configuration is read at the start"),
            _ = terminate.recv() => break Ok("SIGTERM"),
            _ = interrupt.recv() => break Ok("SIGINT"),
            _ = &mut ended => break Err(CoreError::Lost.into()),
        }
    };
    supervisor::leaving();
    drop(listener);
    // Nobody listens any more when no connection is left.
    let _nobody = stop.send(true);
    let farewell = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(FAREWELL, farewell).await.is_err() {
        tracing::warn!("left with requests unanswered");
    }
    telling.shutdown().await;
    // The agent lets go of what it holds before the process ends.
    drop((connections, core));
    let is_lost = matches!(outcome, Err(ServerError::Core(_)));
    if !is_lost && tokio::time::timeout(FAREWELL, ended).await.is_err() {
        tracing::warn!("left in the middle of a request");
    }
    outcome.map(|signal| tracing::info!(signal, "leaving; programs and maps go on serving"))
}

/// Makes the socket's file anew, which somebody has removed.
fn listen_again(listener: &mut Listener, group: Option<&str>) {
    let path = listener.path().to_path_buf();
    match Listener::bind(&path, group) {
        Ok(anew) => {
            tracing::warn!(socket = %path.display(), "the socket's file was gone: it was made again");
            *listener = anew;
        }
        Err(error) => tracing::warn!(%error, "the socket's file is gone and cannot be made again"),
    }
}
