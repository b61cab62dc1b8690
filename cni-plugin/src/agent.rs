//! The way to the agent, and how long it may take in all.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use shunt_agent_api::{Client, ClientError, ErrorKind, Reply, Request, TraceParent, socket_path};

use crate::config::Config;

/// How long one call waits for the agent in all, however often it asks.
const PATIENCE: Duration = Duration::from_secs(15);

/// The agent of one call, connected to when it is first asked.
#[derive(Debug)]
pub(crate) struct Agent {
    socket: PathBuf,
    client: Option<Client>,
    trace: Option<TraceParent>,
    /// What is left of [`PATIENCE`].
    patience: Duration,
}

impl Agent {
    /// The agent that the configuration, the environment or the default names.
    pub(crate) fn of(config: &Config) -> Self {
        Self {
            socket: socket_path(config.network.agent_socket.as_deref()),
            client: None,
            trace: config.trace.clone(),
            patience: PATIENCE,
        }
    }

    /// The same, connected.
    ///
    /// # Errors
    /// As [`Agent::reach`].
    pub(crate) fn connect(config: &Config) -> Result<Self, ClientError> {
        let mut agent = Self::of(config);
        agent.reach()?;
        Ok(agent)
    }

    /// Sees that it can be connected to.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`], [`ClientError::Silent`].
    pub(crate) fn reach(&mut self) -> Result<(), ClientError> {
        self.wait(|agent, deadline| agent.client(deadline).map(drop))
    }

    /// Where it listens.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Has the next request made on a new connection: this one may have failed, and the agent ends one that stays silent.
    pub(crate) fn disconnect(&mut self) {
        self.client = None;
    }

    /// Sends a request and waits for its reply; a refusal is an error.
    ///
    /// # Errors
    /// Every kind of [`ClientError`].
    pub(crate) fn ask(&mut self, request: Request) -> Result<Reply, ClientError> {
        self.wait(|agent, deadline| agent.client(deadline)?.ask_by(request, deadline))
    }

    /// The connection, made by `deadline`.
    fn client(&mut self, deadline: Instant) -> Result<&mut Client, ClientError> {
        match &mut self.client {
            Some(client) => Ok(client),
            none => {
                let client = none.insert(Client::connect_by(&self.socket, deadline)?);
                client.trace(self.trace.clone());
                Ok(client)
            }
        }
    }

    /// Does something that is to end when there is no patience left, and takes its time off that.
    fn wait<T>(&mut self, work: impl FnOnce(&mut Self, Instant) -> T) -> T {
        let begun = Instant::now();
        let done = work(self, begun + self.patience);
        self.patience = self.patience.saturating_sub(begun.elapsed());
        done
    }
}

/// Whether an agent is away rather than unwilling: what it was not told it learns at its next start, or from a link that is gone.
pub(crate) fn is_away(error: &ClientError) -> bool {
    match error {
        ClientError::Unreachable { .. } | ClientError::Silent { .. } | ClientError::Version(_) => true,
        ClientError::Refused(refusal) => matches!(refusal.kind, ErrorKind::Unavailable | ErrorKind::Version),
        ClientError::Frame(_) => false,
    }
}
