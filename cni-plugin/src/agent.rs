//! The way to the agent.

use std::io::{Error, ErrorKind};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use shunt_agent_api::{BridgePort, Client, ClientError, Request, is_listened_to, socket_path};
use shunt_beside::this_processor;

use crate::config::Config;

/// Connects to the agent that the configuration, the environment or the default names.
///
/// # Errors
/// [`ClientError::Unreachable`].
pub(crate) fn connect(config: &Config) -> Result<Client, ClientError> {
    Client::connect_for(&socket(config), this_processor())
}

fn socket(config: &Config) -> PathBuf {
    socket_path(config.network.agent_socket.as_deref())
}

/// Whether there is an agent at all: without one nothing need be begun.
#[derive(Debug, Default)]
pub(crate) struct Presence {
    socket: PathBuf,
    /// What the kernel has said to whoever asked first.
    known: OnceLock<Result<(), Option<i32>>>,
}

impl Presence {
    /// Asks, unless that was done. The agent does not hear of the question, and goes on sleeping.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`].
    pub(crate) fn expect(&self) -> Result<(), ClientError> {
        let ask = || is_listened_to(&self.socket).map_err(|error| error.raw_os_error());
        let source = |errno: Option<i32>| errno.map_or(ErrorKind::Other.into(), Error::from_raw_os_error);
        let unreachable =
            |errno| ClientError::Unreachable { path: self.socket.clone(), source: source(errno) };
        let known = self.known.get().copied().unwrap_or_else(|| {
            let answer = ask();
            let _others_ask_the_same = self.known.set(answer);
            answer
        });
        known.map_err(unreachable)
    }
}

/// A line to the agent for one that is at work, whichever thread connects it.
#[derive(Debug, Default)]
pub(crate) struct Line {
    presence: Arc<Presence>,
    /// Where whoever opened it is at work.
    processor: Option<usize>,
    client: Option<Client>,
    /// What the agent was told on this line of a port that will follow.
    announced: Option<BridgePort>,
}

impl Line {
    /// Nobody is connected yet.
    pub(crate) fn open(config: &Config) -> Self {
        let presence = Presence { socket: socket(config), known: OnceLock::new() };
        Self { presence: Arc::new(presence), processor: this_processor(), ..Self::default() }
    }

    /// Whether there is an agent, for this thread and others to ask.
    pub(crate) fn presence(&self) -> Arc<Presence> {
        Arc::clone(&self.presence)
    }

    /// The agent; connects to it if that was not done yet.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`].
    pub(crate) fn agent(&mut self) -> Result<&mut Client, ClientError> {
        let client = self.take()?;
        Ok(self.client.insert(client))
    }

    /// Tells the agent all of a port but its place, if it is connected. Where that fails, nothing is announced.
    pub(crate) fn announce(&mut self, port: BridgePort) {
        let sent = self.client.as_mut().map(|agent| agent.send(Request::Announce { port: port.clone() }));
        self.announced = matches!(sent, Some(Ok(()))).then_some(port);
    }

    /// The agent, for one last request, and what was announced to it; connects to it if that was not done yet. Whoever wants it once more is
    /// connected anew.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`].
    pub(crate) fn hang_up(&mut self) -> Result<(Client, Option<BridgePort>), ClientError> {
        Ok((self.take()?, self.announced.take()))
    }

    /// Connects anew: the agent keeps a connection on which nothing is said for a while only.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`].
    pub(crate) fn redial(&mut self) -> Result<(), ClientError> {
        (self.client, self.announced) = (None, None);
        self.agent().map(drop)
    }

    /// The connection, new if there is none.
    fn take(&mut self) -> Result<Client, ClientError> {
        if let Some(client) = self.client.take() {
            return Ok(client);
        }
        let client = Client::connect_for(&self.presence.socket, self.processor)?;
        // Nobody need ask any more.
        let _known_already = self.presence.known.set(Ok(()));
        Ok(client)
    }
}
