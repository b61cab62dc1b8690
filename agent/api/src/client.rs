//! A blocking client, for the plugin and for the agent's own query verbs.

use std::io::{self, Read, Write};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use nix::errno::Errno;
use nix::sys::socket::sockopt::SendTimeout;
use nix::sys::socket::{self, AddressFamily, SockFlag, SockType, UnixAddr, setsockopt};
use nix::sys::time::{TimeVal, TimeValLike as _};

use crate::deadline;
use crate::envelope::{Envelope, EnvelopeError, VERSION};
use crate::frame::{self, FrameError};
use crate::message::{AgentError, Reply, Request};
use crate::trace::TraceParent;

/// Bytes that are read at a time.
const PIECE: usize = 16 << 10;

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
    /// How long a request or reply may take; none: as long as nothing happens.
    patience: Option<Duration>,
    /// Of which trace its requests are a part.
    trace: Option<TraceParent>,
}

impl Client {
    /// Connects.
    ///
    /// # Errors
    /// As [`Client::connect_by`].
    pub fn connect(path: &Path) -> Result<Self, ClientError> {
        Self::connect_by(path, Instant::now() + PATIENCE)
    }

    /// Connects, waiting until `deadline` at most: an agent that does not run lets its queue fill.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`], [`ClientError::Silent`].
    pub fn connect_by(path: &Path, deadline: Instant) -> Result<Self, ClientError> {
        match connect(path, deadline) {
            Ok(stream) => Ok(Self {
                path: path.to_path_buf(),
                stream,
                buffer: BytesMut::new(),
                patience: Some(PATIENCE),
                trace: None,
            }),
            Err(source) if source.kind() == io::ErrorKind::TimedOut => {
                Err(ClientError::Silent { path: path.to_path_buf(), source })
            }
            Err(source) => Err(ClientError::Unreachable { path: path.to_path_buf(), source }),
        }
    }

    /// Has every request be a part of this trace from now on.
    pub fn trace(&mut self, trace: Option<TraceParent>) {
        self.trace = trace;
    }

    /// Sends a request and waits for its reply, which may come in parts; a refusal is an error.
    ///
    /// # Errors
    /// Every kind of [`ClientError`] but `Unreachable`.
    pub fn ask(&mut self, request: Request) -> Result<Reply, ClientError> {
        self.send(request)?;
        self.receive()
    }

    /// The same, waiting until `deadline` at most; the agent does not begin it later.
    ///
    /// # Errors
    /// As [`Client::ask`].
    pub fn ask_by(&mut self, request: Request, deadline: Instant) -> Result<Reply, ClientError> {
        self.put(request, Some(deadline))?;
        self.take(|_| Some(deadline))
    }

    /// The same, taking only the first part of the reply, and whether there is more. Nothing else can be asked afterwards.
    ///
    /// # Errors
    /// As [`Client::ask`].
    pub fn sample_by(mut self, request: Request, deadline: Instant) -> Result<(Reply, bool), ClientError> {
        self.put(request, Some(deadline))?;
        self.take_part(Some(deadline))
    }

    /// Sends a request without waiting for the reply.
    ///
    /// # Errors
    /// [`ClientError::Silent`] when the connection is broken.
    pub fn send(&mut self, request: Request) -> Result<(), ClientError> {
        self.put(request, self.deadline())
    }

    /// Waits for the reply to the oldest request that has none yet.
    ///
    /// # Errors
    /// Every kind of [`ClientError`] but `Unreachable`.
    pub fn receive(&mut self) -> Result<Reply, ClientError> {
        self.take(Self::deadline)
    }

    /// The same, waiting until `deadline` at most; none then, and nothing is lost.
    ///
    /// # Errors
    /// Every kind of [`ClientError`] but `Unreachable`.
    pub fn receive_by(&mut self, deadline: Option<Instant>) -> Result<Option<Reply>, ClientError> {
        match self.take(|_| deadline) {
            Err(ClientError::Silent { source, .. }) if source.kind() == io::ErrorKind::TimedOut => Ok(None),
            reply => reply.map(Some),
        }
    }

    /// Subscribes. From now on [`Client::receive`] gives one [`Reply::Event`] after the other, and waits for as long as
    /// nothing happens.
    ///
    /// # Errors
    /// Every kind of [`ClientError`] but `Unreachable`.
    pub fn subscribe(&mut self) -> Result<(), ClientError> {
        self.ask(Request::Subscribe)?;
        self.patience = None;
        Ok(())
    }

    fn deadline(&self) -> Option<Instant> {
        self.patience.map(|patience| Instant::now() + patience)
    }

    fn put(&mut self, request: Request, deadline: Option<Instant>) -> Result<(), ClientError> {
        let envelope = Envelope {
            deadline: deadline.map(deadline::shared),
            parts: true,
            trace: self.trace.clone(),
            ..Envelope::new(request)
        };
        let wire = frame::encode(&envelope)?;
        let mut rest = &wire[..];
        while !rest.is_empty() {
            let written = left(deadline)
                .and_then(|left| self.stream.set_write_timeout(left))
                .and_then(|()| self.stream.write(rest));
            match written {
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The agent may have said why before it closed the connection.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                    return match self.take(|_| deadline) {
                        Err(refused @ ClientError::Refused(_)) => Err(refused),
                        _ => Err(self.silent(error)),
                    };
                }
                Err(error) => return Err(self.silent(error)),
            }
        }
        Ok(())
    }

    /// A reply, once all its parts are there. Before each of them it is asked how long to wait.
    fn take(&mut self, deadline: impl Fn(&Self) -> Option<Instant>) -> Result<Reply, ClientError> {
        let (mut reply, mut more) = self.take_part(deadline(self))?;
        while more {
            let part;
            (part, more) = self.take_part(deadline(self))?;
            reply.append(part);
        }
        Ok(reply)
    }

    /// A message, and whether it has more parts.
    fn take_part(&mut self, deadline: Option<Instant>) -> Result<(Reply, bool), ClientError> {
        loop {
            if let Some(body) = frame::split(&mut self.buffer, frame::MAX_MESSAGE)? {
                return match Envelope::open(&body)? {
                    Envelope { body: Reply::Error(error), .. } => Err(error.into()),
                    Envelope { body: reply, more, .. } => Ok((reply, more)),
                };
            }
            let mut piece = [0; PIECE];
            let read = left(deadline)
                .and_then(|left| self.stream.set_read_timeout(left))
                .and_then(|()| self.stream.read(&mut piece));
            match read {
                Ok(0) => return Err(self.silent(io::ErrorKind::UnexpectedEof.into())),
                Ok(read) => self.buffer.extend_from_slice(&piece[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.silent(error)),
            }
        }
    }

    fn silent(&self, source: io::Error) -> ClientError {
        ClientError::Silent { path: self.path.clone(), source: late(source) }
    }
}

/// Connects, waiting until `deadline` at most. A blocking `connect` waits for a place in the listener's queue as long as a send may take
/// (unix(7)).
///
/// # Errors
/// The kernel's; `TimedOut` when the deadline is over.
pub fn connect(path: &Path, deadline: Instant) -> io::Result<UnixStream> {
    let address = UnixAddr::new(path)?;
    let family = AddressFamily::Unix;
    let socket = socket::socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    loop {
        let left = left(Some(deadline))?.unwrap_or_default();
        setsockopt(&socket, SendTimeout, &TimeVal::microseconds(left.as_micros() as i64))?;
        match socket::connect(socket.as_raw_fd(), &address) {
            Ok(()) => return Ok(UnixStream::from(socket)),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(late(errno.into())),
        }
    }
}

/// What is left until the deadline; none where there is none.
fn left(deadline: Option<Instant>) -> io::Result<Option<Duration>> {
    let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    // The kernel takes nothing for no limit at all.
    match left {
        Some(left) if left < Duration::from_micros(1) => Err(io::ErrorKind::TimedOut.into()),
        left => Ok(left),
    }
}

/// A socket's timeout by its name.
fn late(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::WouldBlock { io::ErrorKind::TimedOut.into() } else { error }
}

#[cfg(test)]
mod tests {
    use nix::sys::socket::{Backlog, bind, listen};

    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(50)
    }

    #[test]
    fn an_agent_that_does_not_run_is_waited_for_until_the_deadline_and_no_longer() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent.sock");
        let listener =
            socket::socket(AddressFamily::Unix, SockType::Stream, SockFlag::empty(), None).unwrap();
        bind(listener.as_raw_fd(), &UnixAddr::new(&path).unwrap()).unwrap();
        listen(&listener, Backlog::new(1).unwrap()).unwrap();
        let begun = Instant::now();
        let mut waiting = Vec::new();
        let refusal = loop {
            match Client::connect_by(&path, soon()) {
                Ok(client) => waiting.push(client),
                Err(error) => break error,
            }
        };
        assert!(matches!(refusal, ClientError::Silent { .. }), "the queue is full: {refusal}");
        for client in &mut waiting {
            let asked = client.ask_by(Request::Status, soon());
            assert!(matches!(asked, Err(ClientError::Silent { .. })), "{asked:?}");
        }
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
        assert!(!waiting.is_empty());
    }
}
