//! The process from its start to its end: what it opens, what it waits for, and how it leaves.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, sleep, timeout};

use super::cni_service::CniService;
use super::connection::Visitor;
use super::error::{ServerError, failed};
use super::listener::Listener;
use super::monitor::Monitor;
use super::signals::Signals;
use super::supervisor;
use super::telling::Telling;
use crate::agent::{Core, CoreError, PreviousState};
use crate::config::Config;

/// Connections at a time, of root and of the group's members. Others are told to come back; no member takes a place of root's.
const MAX_CONNECTIONS: usize = 512;
const MAX_READERS: usize = 32;

/// How long the agent waits after it could not accept a connection, most likely for lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How long requests that were begun may take when the agent ends.
const FAREWELL: Duration = Duration::from_secs(3);

/// How often the agent looks for what nobody tells it.
const HOUSEKEEPING: Duration = Duration::from_secs(1);

/// An agent that serves.
#[derive(Debug)]
pub(super) struct Serving {
    listener: Listener,
    /// The group whose members may ask.
    group: Option<String>,
    monitor: Monitor,
    signals: Signals,
    core: Core,
    /// Hears when the agent's thread ends.
    ended: oneshot::Receiver<()>,
    telling: JoinSet<()>,
    connections: JoinSet<()>,
    places: Arc<Semaphore>,
    readers_places: Arc<Semaphore>,
    stop: watch::Sender<bool>,
}

impl Serving {
    /// Opens the socket, takes over what there is, and tells the service manager.
    ///
    /// # Errors
    /// [`ServerError`].
    pub(super) async fn start(config: Config) -> Result<Self, ServerError> {
        Listener::refuse_taken(&config.socket)?;
        // Before the socket is there: `take` would take the next agent's requests for the previous one's.
        let previous_state =
            PreviousState::take(&config.state_dir).map_err(|error| CoreError::Open(error.into()))?;
        let listener = Listener::bind(&config.socket, config.group.as_deref())?;
        let group = config.group.clone();
        let cni = CniService::open(&config).await?;
        let telling = Telling::open(&config).await?;
        // Before the links are read for the first time: what changes meanwhile waits here.
        let monitor = Monitor::open().map_err(failed("link events"))?;
        let signals = Signals::open()?;
        let (core, ended) = Core::start(config, previous_state).await?;
        let (stop, stopping) = watch::channel(false);
        let mut connections = JoinSet::new();
        if let Some((cni, events)) = cni.zip(core.subscribe()) {
            connections.spawn(cni.serve(events, stopping, FAREWELL));
        }
        tracing::info!(socket = %listener.path().display(), "serving");
        supervisor::ready();
        Ok(Self {
            listener,
            group,
            monitor,
            signals,
            telling: telling.begin(&core),
            core,
            ended,
            connections,
            places: Arc::new(Semaphore::const_new(MAX_CONNECTIONS)),
            readers_places: Arc::new(Semaphore::const_new(MAX_READERS)),
            stop,
        })
    }

    /// Serves until a signal comes; answers its name.
    ///
    /// # Errors
    /// [`ServerError`]: the kernel's events or the agent's thread ended.
    pub(super) async fn serve(&mut self) -> Result<&'static str, ServerError> {
        let mut housekeeping = tokio::time::interval(HOUSEKEEPING);
        housekeeping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok(client) => self.welcome(client),
                    Err(error) => {
                        tracing::warn!(%error, "a connection was not accepted");
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
                events = self.monitor.next() => {
                    self.core.follow(events.map_err(failed("link events"))?).await;
                }
                Some(_) = self.connections.join_next() => {}
                _ = housekeeping.tick() => self.keep_house(),
                signal = self.signals.leave() => return Ok(signal),
                _ = &mut self.ended => return Err(CoreError::Lost.into()),
            }
        }
    }

    /// Serves a client beside the others.
    fn welcome(&mut self, client: tokio::net::UnixStream) {
        let user = match client.peer_cred() {
            Ok(credentials) => credentials.uid(),
            Err(error) => return tracing::debug!(%error, "a client has gone already"),
        };
        let places = if user == 0 { &self.places } else { &self.readers_places };
        let visitor = Visitor {
            user,
            may_read: user == 0 || self.group.is_some(),
            place: Arc::clone(places).try_acquire_owned().ok(),
        };
        self.connections.spawn(visitor.serve(client, self.core.clone(), self.stop.subscribe()));
    }

    /// Looks for what nobody tells the agent.
    fn keep_house(&mut self) {
        if self.core.has_worked() {
            supervisor::alive();
        }
        self.core.tick();
        if self.listener.is_lost() {
            self.listen_again();
        }
    }

    /// Makes the socket's file anew, which somebody has removed.
    fn listen_again(&mut self) {
        let path = self.listener.path().to_path_buf();
        match Listener::bind(&path, self.group.as_deref()) {
            Ok(anew) => {
                tracing::warn!(socket = %path.display(), "the socket's file was gone: it was made again");
                self.listener = anew;
            }
            Err(error) => tracing::warn!(%error, "the socket's file is gone and cannot be made again"),
        }
    }

    /// Leaves after `outcome`: nobody is listened to any more, and what was begun is done.
    ///
    /// # Errors
    /// That of `outcome`.
    pub(super) async fn leave(self, outcome: Result<&'static str, ServerError>) -> Result<(), ServerError> {
        let Self { listener, core, ended, mut telling, mut connections, stop, .. } = self;
        supervisor::leaving();
        drop(listener);
        // Nobody listens any more when no connection is left.
        let _nobody = stop.send(true);
        let farewell = async { while connections.join_next().await.is_some() {} };
        if timeout(FAREWELL, farewell).await.is_err() {
            tracing::warn!("left with requests unanswered");
        }
        telling.shutdown().await;
        // The agent lets go of what it holds before the process ends.
        drop((connections, core));
        let is_lost = matches!(outcome, Err(ServerError::Core(_)));
        if !is_lost && timeout(FAREWELL, ended).await.is_err() {
            tracing::warn!("left in the middle of a request");
        }
        outcome.map(|signal| tracing::info!(signal, "leaving; programs and maps go on serving"))
    }
}
