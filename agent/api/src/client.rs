//! A blocking client, for the plugin and for the agent's own query verbs.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::BytesMut;

use crate::frame::{self, FrameError};
use crate::message::{AgentError, Envelope, EnvelopeError, Reply, Request, VERSION};

/// Where the agent listens unless it is told otherwise.
pub const DEFAULT_SOCKET: &str = "/run/shunt/agent.sock";

/// The environment variable that names another socket.
pub const SOCKET_ENV: &str = "SHUNT_AGENT_SOCKET";

/// How long a reply may take; an attach is milliseconds, but a node under memory pressure is not.
const PATIENCE: Duration = Duration::from_secs(10);

/// The socket to use: `configured`, else [`SOCKET_ENV`], else [`DEFAULT_SOCKET`].
pub fn socket_path(configured: Option<&Path>) -> PathBuf {
    configured
        .map(Path::to_path_buf)
        .or_else(|| std::env::var_os(SOCKET_ENV).filter(|value| !value.is_empty()).map(PathBuf::from))
        .unwrap_or_else(|| PathBuf::from(DEFAULT_SOCKET))
}

/// Why the agent did not answer, or what it answered instead.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens, or the socket is not ours to use.
    #[error("the shunt agent cannot be reached at {path}: {source}")]
    Unreachable {
        /// The socket.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The connection broke or the reply took too long.
    #[error("the shunt agent at {path} did not answer: {source}")]
    Silent {
        /// The socket.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The reply is not of this protocol.
    #[error("the shunt agent's answer cannot be read: {0}")]
    Frame(#[from] FrameError),
    /// The reply is of another version.
    #[error("the shunt agent speaks version {0} of the protocol, this program {VERSION}")]
    Version(u32),
    /// The agent refused.
    #[error(transparent)]
    Refused(#[from] AgentError),
}

impl From<EnvelopeError> for ClientError {
    fn from(error: EnvelopeError) -> Self {
        match error {
            EnvelopeError::Version(version) => Self::Version(version),
            EnvelopeError::Frame(error) => Self::Frame(error),
        }
    }
}

/// A connection to the agent.
#[derive(Debug)]
pub struct Client {
    path: PathBuf,
    stream: UnixStream,
    /// What has arrived and was not read yet.
    buffer: BytesMut,
}

impl Client {
    /// Connects.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`].
    pub fn connect(path: &Path) -> Result<Self, ClientError> {
        let unreachable = |source| ClientError::Unreachable { path: path.to_path_buf(), source };
        let stream = UnixStream::connect(path).map_err(unreachable)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(unreachable)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(unreachable)?;
        Ok(Self { path: path.to_path_buf(), stream, buffer: BytesMut::new() })
    }

    /// Connects anew to the same socket: the agent ends a connection that stays silent for a minute.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`].
    pub fn reconnect(&mut self) -> Result<(), ClientError> {
        *self = Self::connect(&self.path)?;
        Ok(())
    }

    /// Sends a request and waits for its reply; a refusal is an error.
    ///
    /// # Errors
    /// Every kind of [`ClientError`] but `Unreachable`.
    pub fn ask(&mut self, request: Request) -> Result<Reply, ClientError> {
        self.send(request)?;
        self.receive()
    }

    /// Sends a request without waiting for the reply.
    ///
    /// # Errors
    /// [`ClientError::Silent`] when the connection is broken.
    pub fn send(&mut self, request: Request) -> Result<(), ClientError> {
        let wire = frame::encode(&Envelope::new(request))?;
        self.stream.write_all(&wire).map_err(|source| self.silent(source))
    }

    /// Waits for the reply to the oldest request that has none yet.
    ///
    /// # Errors
    /// Every kind of [`ClientError`] but `Unreachable`.
    pub fn receive(&mut self) -> Result<Reply, ClientError> {
        loop {
            if let Some(body) = frame::split(&mut self.buffer, frame::MAX_MESSAGE)? {
                return match Envelope::open(&body)?.body {
                    Reply::Error(error) => Err(error.into()),
                    reply => Ok(reply),
                };
            }
            let mut piece = [0; 1024];
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(self.silent(io::ErrorKind::UnexpectedEof.into())),
                Ok(read) => self.buffer.extend_from_slice(&piece[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.silent(error)),
            }
        }
    }

    /// Subscribes. From now on [`Client::receive`] gives one [`Reply::Event`] after the other, and waits for as long as
    /// nothing happens.
    ///
    /// # Errors
    /// Every kind of [`ClientError`] but `Unreachable`.
    pub fn subscribe(&mut self) -> Result<(), ClientError> {
        self.ask(Request::Subscribe)?;
        self.stream.set_read_timeout(None).map_err(|source| self.silent(source))
    }

    fn silent(&self, source: io::Error) -> ClientError {
        ClientError::Silent { path: self.path.clone(), source }
    }
}
