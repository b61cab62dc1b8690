//! CNI as a service, on a socket of its own. It asks the agent by the agent's socket, like any plugin.

use std::io;
use std::time::Duration;

use shunt_agent_api::Event;
use shunt_cni::{Server, Settings};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio::time::sleep;

use super::listener::{Listener, ListenerError};
use crate::config::{ApiOptions, Config};
use crate::ticks::{SELDOM, Ticks};

/// Where networks are kept, below the state directory.
const NETWORKS: &str = "networks";

/// How long a plugin's program may take.
const PROGRAM_LIMIT: Duration = Duration::from_secs(60);

/// How long nobody is accepted after that has failed, most likely for lack of descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// Why there is no service.
#[derive(Debug, thiserror::Error)]
pub enum CniServiceError {
    /// The socket.
    #[error("the CNI service: {0}")]
    Listener(#[from] ListenerError),
    /// The timer.
    #[error("a timer: {0}")]
    Timer(io::Error),
    /// The messages.
    #[error(transparent)]
    Descriptors(#[from] shunt_cni::DescriptorError),
}

/// The service of an agent whose configuration asks for it.
#[derive(Debug)]
pub(super) struct CniService {
    listener: Listener,
    group: Option<String>,
    server: Server,
    /// When the socket's file is looked for.
    look: Ticks,
}

impl CniService {
    /// Listens; clients wait until [`CniService::serve`]. None without `[api]`.
    ///
    /// # Errors
    /// [`CniServiceError`].
    pub(super) async fn open(config: &Config) -> Result<Option<Self>, CniServiceError> {
        let Some(options) = &config.api else { return Ok(None) };
        let server = Server::new(settings(options, config), options.group.is_some()).await?;
        let listener = Listener::bind(&options.socket, options.group.as_deref())?;
        let look = Ticks::every(SELDOM).map_err(CniServiceError::Timer)?;
        Ok(Some(Self { listener, group: options.group.clone(), server, look }))
    }

    /// Serves until `stop` says so; what was begun is then done, or undone, as far as that takes no longer than `patience`.
    pub(super) async fn serve(
        mut self,
        mut events: broadcast::Receiver<Event>,
        mut stop: watch::Receiver<bool>,
        patience: Duration,
    ) {
        tracing::info!(socket = %self.listener.path().display(), "serving CNI");
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok(client) => self.server.welcome(client),
                    Err(error) => {
                        tracing::warn!(%error, "a connection to the CNI service was not accepted");
                        sleep(PAUSE).await;
                    }
                },
                event = events.recv() => match event {
                    Ok(event) => self.server.tell(event),
                    Err(RecvError::Lagged(missing)) => self.server.tell_missing(missing),
                    // The agent ends.
                    Err(RecvError::Closed) => break,
                },
                Ok(()) = self.look.tick() => self.listen_again_if_lost(),
                () = stopped(&mut stop) => break,
            }
        }
        let Self { listener, server, .. } = self;
        drop(listener);
        server.leave(patience).await;
    }

    fn listen_again_if_lost(&mut self) {
        if !self.listener.is_lost() {
            return;
        }
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

async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _or_gone = stop.wait_for(|stop| *stop).await;
}

fn settings(options: &ApiOptions, config: &Config) -> Settings {
    Settings {
        agent_socket: config.socket.clone(),
        cni_path: options.cni_path.clone(),
        cache_dir: options.cache_dir.clone(),
        networks_dir: config.state_dir.join(NETWORKS),
        netns_dirs: options.netns_dirs.clone(),
        program_limit: PROGRAM_LIMIT,
    }
}
