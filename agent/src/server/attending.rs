//! What an agent at work does: it lets clients in, follows the kernel, and keeps house.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::connection::Visitor;
use super::error::{ServerError, failed};
use super::listener::Listener;
use super::monitor::Monitor;
use super::supervisor;
use crate::agent::Core;
use crate::ticks::Ticks;

/// Connections at a time, of root and of the group's members. Others are told to come back; no member takes a place of root's.
const MAX_CONNECTIONS: usize = 512;
const MAX_READERS: usize = 32;

/// How long the agent waits after it could not accept a connection, most likely for lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// An agent at work.
#[derive(Debug)]
pub(super) struct Attending {
    listener: Listener,
    /// The group whose members may ask.
    group: Option<String>,
    monitor: Monitor,
    core: Core,
    connections: JoinSet<()>,
    places: Arc<Semaphore>,
    readers_places: Arc<Semaphore>,
    stop: watch::Sender<bool>,
    /// When the process looks for what nobody tells it.
    housekeeping: Ticks,
}

impl Attending {
    pub(super) fn new(
        (listener, group): (Listener, Option<String>),
        monitor: Monitor,
        core: Core,
        housekeeping: Ticks,
    ) -> Self {
        Self {
            listener,
            group,
            monitor,
            core,
            connections: JoinSet::new(),
            places: Arc::new(Semaphore::const_new(MAX_CONNECTIONS)),
            readers_places: Arc::new(Semaphore::const_new(MAX_READERS)),
            stop: watch::Sender::new(false),
            housekeeping,
        }
    }

    /// Works until something is lost. Cancelling it loses nothing.
    ///
    /// # Errors
    /// [`ServerError`]: the kernel's events or the timer's ended.
    pub(super) async fn work(&mut self) -> Result<(), ServerError> {
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
                due = self.housekeeping.tick() => {
                    due.map_err(failed("a timer"))?;
                    self.keep_house();
                }
            }
        }
    }

    /// Lets nobody in any more and ends the connections, each once what it was asked is done, or after `patience`.
    pub(super) async fn leave(self, patience: Duration) {
        let Self { listener, core, mut connections, stop, .. } = self;
        drop(listener);
        // Nobody listens any more when no connection is left.
        let _nobody = stop.send(true);
        let farewell = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(patience, farewell).await.is_err() {
            tracing::warn!("left with requests unanswered");
        }
        // The agent lets go of what it holds before the process ends.
        drop((connections, core));
    }

    /// Serves a client beside the others.
    fn welcome(&mut self, client: UnixStream) {
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

    /// Looks for what nobody tells. The agent's thread looks after its node by itself, each second.
    fn keep_house(&mut self) {
        if self.core.has_worked() {
            supervisor::alive();
        }
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
}
