//! The signals that the agent hears.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::error::{ServerError, failed};

/// Hears SIGTERM, SIGINT and SIGHUP, whose default would end the process.
#[derive(Debug)]
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    /// Takes them over.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn open() -> Result<Self, ServerError> {
        Ok(Self {
            terminate: signal(SignalKind::terminate()).map_err(failed("SIGTERM"))?,
            interrupt: signal(SignalKind::interrupt()).map_err(failed("SIGINT"))?,
            hang_up: signal(SignalKind::hangup()).map_err(failed("SIGHUP"))?,
        })
    }

    /// Waits for one that asks the agent to leave; answers its name. Cancelling it loses nothing.
    pub(super) async fn leave(&mut self) -> &'static str {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return "SIGTERM",
                _ = self.interrupt.recv() => return "SIGINT",
                _ = self.hang_up.recv() => {
                    tracing::info!("SIGHUP does nothing: the configuration is read at the start");
                }
            }
        }
    }
}
