//! The way to the agent.

use std::path::PathBuf;

use shunt_agent_api::{Client, ClientError, socket_path, this_processor};

use crate::config::Config;

/// Connects to the agent that the configuration, the environment or the default names.
///
/// # Errors
/// [`ClientError::Unreachable`].
pub(crate) fn connect(config: &Config) -> Result<Client, ClientError> {
    Client::connect(&socket(config))
}

fn socket(config: &Config) -> PathBuf {
    socket_path(config.network.agent_socket.as_deref())
}

/// A line to the agent for one that is at work, whichever thread connects it.
#[derive(Debug, Default)]
pub(crate) struct Line {
    socket: PathBuf,
    /// Where whoever opened it is at work.
    processor: Option<usize>,
    client: Option<Client>,
}

impl Line {
    /// Nobody is connected yet.
    pub(crate) fn open(config: &Config) -> Self {
        Self { socket: socket(config), processor: this_processor(), client: None }
    }

    /// Whether there is a socket at all: without one nothing need be begun.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`].
    pub(crate) fn expect_agent(&self) -> Result<(), ClientError> {
        let there = std::fs::metadata(&self.socket).map(drop);
        there.map_err(|source| ClientError::Unreachable { path: self.socket.clone(), source })
    }

    /// The agent; connects to it if that was not done yet.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`].
    pub(crate) fn agent(&mut self) -> Result<&mut Client, ClientError> {
        match &mut self.client {
            Some(client) => Ok(client),
            none => Ok(none.insert(Client::connect_for(&self.socket, self.processor)?)),
        }
    }

    /// The agent, for one last request; connects to it if that was not done yet. Whoever wants it once more is connected anew.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`].
    pub(crate) fn hang_up(&mut self) -> Result<Client, ClientError> {
        match self.client.take() {
            Some(client) => Ok(client),
            None => Client::connect_for(&self.socket, self.processor),
        }
    }

    /// Connects anew: the agent keeps a connection on which nothing is said for a while only.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`].
    pub(crate) fn redial(&mut self) -> Result<(), ClientError> {
        self.client = Some(Client::connect_for(&self.socket, self.processor)?);
        Ok(())
    }
}
