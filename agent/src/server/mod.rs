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
mod serving;
mod signals;
mod subscription;
mod supervisor;
mod telling;
mod wire;

use std::io;

pub use listener::{Listener, ListenerError};

use self::serving::Serving;
use crate::agent::{Core, CoreError};
use crate::capacity::slice::NodeNameError;
use crate::config::Config;
use crate::metrics::MetricsError;

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
    let mut serving = Serving::start(config).await?;
    let outcome = serving.serve().await;
    serving.leave(outcome).await
}
