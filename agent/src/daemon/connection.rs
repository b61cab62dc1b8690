//! One client: who it is, what it asks, how long it may take.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use shunt_agent_api::frame::{self, FrameError, MAX_REQUEST};
use shunt_agent_api::{AgentError, BridgePort, Envelope, EnvelopeError, ErrorKind, Reply, Request, VERSION};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::timeout;

use super::outbox::Outbox;
use super::placement::Guest;
use super::stream::Stream;
use super::{Core, subscription};

/// How long a client may stay silent between requests.
const IDLE: Duration = Duration::from_secs(60);

/// How long a request may take to arrive once it has begun, and its answer to be taken.
const TRANSFER: Duration = Duration::from_secs(5);

/// Bytes that a connection keeps for reading; a larger request grows it.
const BUFFER: usize = 4096;

/// Why a connection ends before the client ends it.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectionError {
    #[error("user {0} may not use this socket")]
    Stranger(u32),
    #[error("too slow")]
    Slow(#[from] tokio::time::error::Elapsed),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Frame(#[from] FrameError),
}

/// Serves one client until it leaves, misbehaves or the agent ends. Without a `place` it is told to come back.
pub(super) async fn serve(
    (stream, guest): (Stream, Guest),
    has_readers: bool,
    core: Core,
    stopping: watch::Receiver<bool>,
    place: Option<OwnedSemaphorePermit>,
) {
    let mut client = Client {
        outbox: Outbox::new(stream),
        guest: Some(guest),
        has_readers,
        buffer: BytesMut::with_capacity(BUFFER),
        announced: None,
    };
    let served = match place {
        Some(_) => client.converse(&core, stopping).await,
        None => {
            client.say(&refusal(ErrorKind::Unavailable, "too many connections, try again".to_owned())).await
        }
    };
    // Not sooner: the kernel would have the agent's thread go on, on the processor that the client was just woken on. A client that has its last
    // answer may be at work still, and is a guest until this is said.
    core.settle();
    if let Err(error) = served {
        tracing::debug!(%error, "a client was disconnected");
    }
}

/// What a connection goes on with.
enum Next {
    Heard(Result<Option<Bytes>, ConnectionError>),
    /// The client did not take the whole of an answer.
    Left,
    Stop,
}

struct Client {
    outbox: Arc<Outbox>,
    /// None of one that only listens from now on.
    guest: Option<Guest>,
    /// Whether the socket is a group's, too: by the file's mode only its members get this far.
    has_readers: bool,
    buffer: BytesMut,
    /// The greater part of a request of which the rest will follow.
    announced: Option<BridgePort>,
}

impl Client {
    async fn converse(
        &mut self,
        core: &Core,
        mut stopping: watch::Receiver<bool>,
    ) -> Result<(), ConnectionError> {
        let user = self.stream().user()?;
        let is_root = user == 0;
        if !is_root && !self.has_readers {
            return Err(ConnectionError::Stranger(user));
        }
        let outbox = Arc::clone(&self.outbox);
        loop {
            let next = tokio::select! {
                request = self.hear() => Next::Heard(request),
                () = outbox.is_left() => Next::Left,
                _ = stopping.wait_for(|stop| *stop) => Next::Stop,
            };
            // One answer at a time.
            self.finish().await?;
            let request = match next {
                Next::Heard(request) => request,
                Next::Left => continue,
                Next::Stop => return Ok(()),
            };
            match request {
                Ok(None) => return Ok(()),
                Ok(Some(body)) => match read(&body) {
                    Ok(Envelope { body: request, .. }) if !is_root && !request.is_read_only() => {
                        let message = format!("user {user} may ask, and change nothing");
                        self.say(&refusal(ErrorKind::Forbidden, message)).await?;
                    }
                    Ok(Envelope { body: Request::Subscribe, .. }) => {
                        let events = core.subscribe();
                        drop(self.guest.take());
                        return subscription::serve(self.stream(), events, stopping).await;
                    }
                    Ok(Envelope { body: Request::Announce { port }, .. }) => {
                        self.announced = Some(port);
                        // Where the rest has come with it, it is too late to make ready.
                        if self.buffer.is_empty() {
                            core.expect();
                        }
                    }
                    Ok(Envelope { body: request, is_last, .. }) => {
                        match self.whole(request) {
                            Ok(request) => core.serve(request, outbox.owe()).await,
                            Err(error) => self.say(&Reply::Error(error)).await?,
                        }
                        if is_last {
                            return self.finish().await;
                        }
                    }
                    Err(error) => self.say(&Reply::Error(error)).await?,
                },
                Err(ConnectionError::Frame(error)) => {
                    self.say(&refusal(ErrorKind::Malformed, error.to_string())).await?;
                    return Err(error.into());
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// A request with what was announced of it.
    fn whole(&mut self, request: Request) -> Result<Request, AgentError> {
        let Request::AttachAnnounced { place, is_new, set_up } = request else { return Ok(request) };
        let port = self.announced.take().ok_or_else(|| AgentError {
            kind: ErrorKind::Malformed,
            message: "nothing was announced on this connection".to_owned(),
        })?;
        Ok(Request::Attach { port: port.at(place), is_new, set_up })
    }

    fn stream(&self) -> &Stream {
        self.outbox.stream()
    }

    /// Waits for the answer that is owed, if one is, and sends what is left of it.
    async fn finish(&self) -> Result<(), ConnectionError> {
        let rest = self.outbox.rest().await?;
        Ok(timeout(TRANSFER, self.stream().write(rest)).await??)
    }

    /// The next message's bytes; none when the client has left.
    async fn hear(&mut self) -> Result<Option<Bytes>, ConnectionError> {
        if self.buffer.is_empty() && timeout(IDLE, self.receive()).await?? == 0 {
            return Ok(None);
        }
        timeout(TRANSFER, async {
            loop {
                if let Some(body) = frame::split(&mut self.buffer, MAX_REQUEST)? {
                    return Ok(Some(body));
                }
                if self.receive().await? == 0 {
                    return Ok(None);
                }
            }
        })
        .await?
    }

    /// Reads what there is; 0 when the client has left.
    async fn receive(&mut self) -> io::Result<usize> {
        self.outbox.stream().read(&mut self.buffer).await
    }

    async fn say(&self, reply: &Reply) -> Result<(), ConnectionError> {
        say(self.stream(), reply).await
    }
}

/// Sends a reply; whoever does not take it in time is sent away.
pub(super) async fn say(stream: &Stream, reply: &Reply) -> Result<(), ConnectionError> {
    Ok(timeout(TRANSFER, stream.write(encode(reply)?)).await??)
}

/// The bytes of a reply.
pub(super) fn encode(reply: &Reply) -> Result<Bytes, FrameError> {
    frame::encode(&Envelope::new(reply))
}

fn read(body: &[u8]) -> Result<Envelope<Request>, AgentError> {
    Envelope::open(body).map_err(|error| match error {
        EnvelopeError::Version(version) => AgentError {
            kind: ErrorKind::Version,
            message: format!("the agent speaks version {VERSION} of the protocol, not {version}"),
        },
        EnvelopeError::Frame(error) => AgentError { kind: ErrorKind::Malformed, message: error.to_string() },
    })
}

pub(super) fn refusal(kind: ErrorKind, message: String) -> Reply {
    Reply::Error(AgentError { kind, message })
}
