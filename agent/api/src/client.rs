//! A blocking client, for the plugin and for the agent's own query verbs.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use nix::sys::socket::{MsgFlags, recv};
use serde::Deserialize;

use crate::address::{connect_from, this_processor};
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
        Self::connect_for(path, this_processor())
    }

    /// Connects on behalf of whoever is at work on a [processor](this_processor): the agent keeps off it.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`].
    pub fn connect_for(path: &Path, processor: Option<usize>) -> Result<Self, ClientError> {
        let unreachable = |source| ClientError::Unreachable { path: path.to_path_buf(), source };
        let stream = connect_from(path, processor).map_err(unreachable)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(unreachable)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(unreachable)?;
        Ok(Self { path: path.to_path_buf(), stream, buffer: BytesMut::new() })
    }

    /// Sends a request and waits for its reply; a refusal is an error.
    ///
    /// # Errors
    /// Every kind of [`ClientError`] but `Unreachable`.
    pub fn ask(&mut self, request: Request) -> Result<Reply, ClientError> {
        self.send(request)?;
        self.receive()
    }

    /// Sends a request without waiting, so that the caller can work while the agent does.
    ///
    /// # Errors
    /// [`ClientError::Silent`] when the connection is broken.
    pub fn send(&mut self, request: Request) -> Result<(), ClientError> {
        self.put(&Envelope::new(request))
    }

    /// The same, and says that nothing will follow: the agent ends the connection behind its reply.
    ///
    /// # Errors
    /// [`ClientError::Silent`] when the connection is broken.
    pub fn send_last(&mut self, request: Request) -> Result<(), ClientError> {
        self.put(&Envelope::last(request))
    }

    fn put(&mut self, request: &Envelope<Request>) -> Result<(), ClientError> {
        let wire = frame::encode(request)?;
        self.stream.write_all(&wire).map_err(|source| self.silent(source))
    }

    /// Waits for the reply to the oldest request that has none yet.
    ///
    /// # Errors
    /// Every kind of [`ClientError`] but `Unreachable`.
    pub fn receive(&mut self) -> Result<Reply, ClientError> {
        Unread(self.reply()?).read()
    }

    /// The same of a reply that nobody may want to read: whether it is a refusal is seen all the same.
    ///
    /// # Errors
    /// Every kind of [`ClientError`] but `Unreachable`.
    pub fn receive_attached(&mut self) -> Result<Unread, ClientError> {
        let unread = Unread(self.reply()?);
        if !unread.is_attached() {
            unread.read()?;
        }
        Ok(unread)
    }

    /// One message's JSON.
    fn reply(&mut self) -> Result<Bytes, ClientError> {
        loop {
            if let Some(body) = frame::split(&mut self.buffer, frame::MAX_MESSAGE)? {
                return Ok(body);
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

    /// Whether the agent has said something that was not received yet, or has ended the connection.
    pub fn has_answered(&self) -> bool {
        let now = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
        !self.buffer.is_empty() || recv(self.stream.as_raw_fd(), &mut [0], now).is_ok()
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

/// A reply as it came.
#[derive(Clone, Debug)]
pub struct Unread(Bytes);

impl Unread {
    /// Reads it; a refusal is an error.
    ///
    /// # Errors
    /// The agent refused, or this is no reply.
    pub fn read(&self) -> Result<Reply, ClientError> {
        match Envelope::open(&self.0)?.body {
            Reply::Error(error) => Err(error.into()),
            reply => Ok(reply),
        }
    }

    /// Whether this is [`Reply::Attached`], of which no more is read. What would read any reply takes a page of the stack for each kind that there is.
    fn is_attached(&self) -> bool {
        matches!(frame::decode(&self.0), Ok(Envelope { version: VERSION, body: Attached { .. }, .. }))
    }
}

/// [`Reply::Attached`] without what it is about.
#[derive(Deserialize)]
struct Attached {
    #[expect(dead_code, reason = "there is but one")]
    reply: Kind,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Attached,
}

/// Readable when the agent has said something or has ended the connection; what was [received](Client::receive) counts no more.
impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Attached, ErrorKind};

    /// A reply as it comes, behind its length.
    fn sent(reply: Envelope<Reply>) -> Unread {
        Unread(frame::encode(&reply).unwrap().slice(4..))
    }

    #[test]
    fn what_was_attached_is_told_from_all_else_without_being_read() {
        let attached = Reply::Attached(Attached { programs: Vec::new() });
        let unread = sent(Envelope::new(attached.clone()));
        assert!(unread.is_attached());
        assert_eq!(unread.read().unwrap(), attached);
        let error = AgentError { kind: ErrorKind::Exists, message: "there is one".to_owned() };
        let refused = sent(Envelope::new(Reply::Error(error.clone())));
        assert!(!refused.is_attached());
        assert!(matches!(refused.read(), Err(ClientError::Refused(said)) if said == error));
        assert!(!sent(Envelope::new(Reply::Checked)).is_attached());
        let newer = sent(Envelope { version: VERSION + 1, is_last: false, body: attached });
        assert!(!newer.is_attached());
        assert!(matches!(newer.read(), Err(ClientError::Version(version)) if version == VERSION + 1));
    }
}
