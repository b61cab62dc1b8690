//! Serves a driver to the kubelet of this node.

use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::connection::converse;
use crate::driver::Driver;
use crate::registration::Registrar;
use crate::services::{Devices, Registry, Services};
use crate::socket::SocketError;
use crate::sockets::Sockets;

/// Connections at a time. A kubelet has one for each of claims, health and registration, and a new one after each of its starts.
const MAX_CONNECTIONS: usize = 32;

/// How often the sockets' files are looked for.
const LOOK: Duration = Duration::from_secs(1);

/// How long nobody is accepted after that has failed, most likely for lack of descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// Why a driver is not served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A socket cannot be had.
    #[error(transparent)]
    Socket(#[from] SocketError),
}

/// Serves a driver until it is dropped; the sockets go with it. `root` is the kubelet's root directory.
///
/// # Errors
/// [`ServeError`].
pub async fn serve<D: Driver>(root: &Path, name: &str, driver: Arc<D>) -> Result<Infallible, ServeError> {
    let mut sockets = Sockets::open(root, name)?;
    tracing::info!(endpoint = sockets.endpoint(), "served to the kubelet");
    let devices = Devices::new(&driver);
    let registry = Registry::new(Registrar { name: name.to_owned(), endpoint: sockets.endpoint(), driver });
    let mut clients = Clients { tasks: JoinSet::new(), places: Arc::new(Semaphore::new(MAX_CONNECTIONS)) };
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            accepted = sockets.own.accept() => clients.welcome(accepted, &devices).await,
            accepted = sockets.registration.accept() => clients.welcome(accepted, &registry).await,
            _ = look.tick() => sockets.make_lost()?,
            Some(_) = clients.tasks.join_next() => {}
        }
    }
}

/// Who is connected. All are disconnected when this is dropped.
struct Clients {
    tasks: JoinSet<()>,
    places: Arc<Semaphore>,
}

impl Clients {
    /// Serves a client beside the others; one too many is disconnected.
    async fn welcome(&mut self, accepted: io::Result<UnixStream>, services: &impl Services) {
        let stream = match accepted {
            Ok(stream) => stream,
            Err(error) => {
                tracing::warn!(%error, "a kubelet's connection was not accepted");
                return sleep(PAUSE).await;
            }
        };
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            return tracing::warn!(most = MAX_CONNECTIONS, "a kubelet's connection was one too many");
        };
        let services = services.clone();
        self.tasks.spawn(async move {
            converse(stream, services).await;
            drop(place);
        });
    }
}
