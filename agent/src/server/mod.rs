//! The agent as a process: its socket, its thread, what it hears from the kernel, and how it ends.
//!
//! The agent's state belongs to one thread ([`core`]). Connections are served by a single-threaded runtime beside it, so that a
//! slow client delays no other; a third thread listens to the kernel ([`Monitor`]). On SIGTERM or SIGINT the process leaves; programs, maps
//! and links stay and go on serving.

mod attending;
mod cni_service;
mod connection;
mod error;
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
mod watching;
mod wire;

pub use self::error::ServerError;
pub use self::listener::{Listener, ListenerError};

use self::serving::Serving;
use crate::config::Config;

/// Runs the agent until it is asked to end.
///
/// # Errors
/// [`ServerError`]: it could not start, or lost what it lives on.
pub async fn run(config: Config) -> Result<(), ServerError> {
    let mut serving = Serving::start(config).await?;
    let outcome = serving.serve().await;
    serving.leave(outcome).await
}
