//! The way to the agent.

use std::path::PathBuf;

use shunt_agent_api::{Client, ClientError, Reply, Request, socket_path};

use crate::config::Config;

/// The agent of one call, connected to when it is first asked.
#[derive(Debug)]
pub(crate) struct Agent {
    socket: PathBuf,
    client: Option<Client>,
}

impl Agent {
    /// The agent that the configuration, the environment or the default names.
    pub(crate) fn of(config: &Config) -> Self {
        Self { socket: socket_path(config.network.agent_socket.as_deref()), client: None }
    }

    /// The same, connected.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`].
    pub(crate) fn connect(config: &Config) -> Result<Self, ClientError> {
        let agent = Self::of(config);
        let client = Client::connect(&agent.socket)?;
        Ok(Self { client: Some(client), ..agent })
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
        let client = match &mut self.client {
            Some(client) => client,
            none => none.insert(Client::connect(&self.socket)?),
        };
        client.ask(request)
    }
}
