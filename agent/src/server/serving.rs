//! The process from its start to its end: what it opens, what it waits for, and how it leaves.

use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use super::attending::Attending;
use super::cni_service::CniService;
use super::error::{ServerError, failed};
use super::listener::Listener;
use super::monitor::Monitor;
use super::signals::Signals;
use super::supervisor;
use super::telling::Telling;
use crate::agent::{Core, CoreError, PreviousState};
use crate::config::Config;
use crate::ticks::{SELDOM, Ticks};

/// How long what was begun may take when the agent ends: calls of CNI, then requests.
const FAREWELL: Duration = Duration::from_secs(3);

/// An agent that serves.
#[derive(Debug)]
pub(super) struct Serving {
    attending: Attending,
    signals: Signals,
    /// Hears when the agent's thread ends.
    ended: oneshot::Receiver<()>,
    telling: JoinSet<()>,
    /// CNI as a service, where it is one, and what ends it.
    cni: Option<(JoinHandle<()>, watch::Sender<bool>)>,
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
        let housekeeping = Ticks::every(SELDOM).map_err(failed("a timer"))?;
        let (core, ended) = Core::start(config, previous_state).await?;
        let cni = cni.zip(core.subscribe()).map(|(cni, events)| {
            let (stop, stopping) = watch::channel(false);
            (tokio::spawn(cni.serve(events, stopping, FAREWELL)), stop)
        });
        tracing::info!(socket = %listener.path().display(), "serving");
        supervisor::ready();
        let telling = telling.begin(&core);
        let attending = Attending::new((listener, group), monitor, core, housekeeping);
        Ok(Self { attending, signals, ended, telling, cni })
    }

    /// Serves until a signal comes; answers its name.
    ///
    /// # Errors
    /// [`ServerError`]: the kernel's events or the agent's thread ended.
    pub(super) async fn serve(&mut self) -> Result<&'static str, ServerError> {
        tokio::select! {
            lost = self.attending.work() => lost.and(Err(CoreError::Lost.into())),
            signal = self.signals.leave() => Ok(signal),
            _ = &mut self.ended => Err(CoreError::Lost.into()),
        }
    }

    /// Leaves after `outcome`: nobody is listened to any more, and what was begun is done.
    ///
    /// # Errors
    /// That of `outcome`.
    pub(super) async fn leave(self, outcome: Result<&'static str, ServerError>) -> Result<(), ServerError> {
        let Self { mut attending, ended, mut telling, cni, .. } = self;
        supervisor::leaving();
        // First of all: its calls ask this agent by its socket, as every plugin does.
        if let Some((mut serving, stop)) = cni {
            let _gone = stop.send(true);
            tokio::select! {
                _ = timeout(2 * FAREWELL, &mut serving) => {}
                _lost = attending.work() => {}
            }
            serving.abort();
        }
        attending.leave(FAREWELL).await;
        telling.shutdown().await;
        let is_lost = matches!(outcome, Err(ServerError::Core(_)));
        if !is_lost && timeout(FAREWELL, ended).await.is_err() {
            tracing::warn!("left in the middle of a request");
        }
        outcome.map(|signal| tracing::info!(signal, "leaving; programs and maps go on serving"))
    }
}
