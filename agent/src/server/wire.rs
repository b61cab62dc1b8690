//! One client's socket: length-delimited JSON in both directions ([`shunt_agent_api::frame`]), and how long either may take.

use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::{SinkExt as _, StreamExt as _};
use shunt_agent_api::frame::{self, FrameError, LENGTH_BYTES, MAX_MESSAGE};
use shunt_agent_api::{AgentError, Envelope, ErrorKind, PART, Reply};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;
use tokio_util::codec::{FramedRead, FramedWrite, LengthDelimitedCodec, LengthDelimitedCodecError};

/// How long a client may stay silent between requests.
const IDLE: Duration = Duration::from_secs(60);

/// How long a request may take to arrive once it has begun, and its reply to be taken.
const TRANSFER: Duration = Duration::from_secs(5);

/// Why a connection ends before the client ends it.
#[derive(Debug, thiserror::Error)]
pub(super) enum WireError {
    #[error("user {0} may not use this socket")]
    Forbidden(u32),
    #[error("the client is too slow")]
    Slow(#[from] tokio::time::error::Elapsed),
    #[error("the request is longer than {0} bytes")]
    TooLong(usize),
    #[error("the rest of an answer is missing")]
    Unfinished,
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Frame(#[from] FrameError),
}

/// What a client says.
#[derive(Debug)]
pub(super) struct Requests {
    frames: FramedRead<OwnedReadHalf, LengthDelimitedCodec>,
    /// The longest request.
    longest: usize,
}

/// What a client is told.
#[derive(Debug)]
pub(super) struct Replies(FramedWrite<OwnedWriteHalf, LengthDelimitedCodec>);

/// Both directions of a client's socket; no request is to be longer than `longest`.
pub(super) fn split(stream: UnixStream, longest: usize) -> (Requests, Replies) {
    let (from, to) = stream.into_split();
    let codec = |limit| {
        LengthDelimitedCodec::builder().length_field_length(LENGTH_BYTES).max_frame_length(limit).new_codec()
    };
    let frames = FramedRead::new(from, codec(longest));
    (Requests { frames, longest }, Replies(FramedWrite::new(to, codec(MAX_MESSAGE))))
}

impl Requests {
    /// The next message's JSON; none when the client has left. Cancelling it loses nothing.
    ///
    /// # Errors
    /// [`WireError`]: the client was silent or slow, or its message is too long.
    pub(super) async fn next(&mut self) -> Result<Option<BytesMut>, WireError> {
        if self.frames.read_buffer().is_empty() {
            timeout(IDLE, self.frames.get_ref().readable()).await??;
        }
        match timeout(TRANSFER, self.frames.next()).await? {
            None => Ok(None),
            Some(Ok(body)) => Ok(Some(body)),
            Some(Err(error))
                if error.get_ref().is_some_and(|inner| inner.is::<LengthDelimitedCodecError>()) =>
            {
                Err(WireError::TooLong(self.longest))
            }
            // The client left in the middle of a message.
            Some(Err(error)) if error.kind() == io::ErrorKind::Other => Ok(None),
            Some(Err(error)) => Err(error.into()),
        }
    }

    /// Waits until the client says something or leaves, however long that takes. Cancelling it loses nothing.
    pub(super) async fn until_heard(&mut self) {
        let _heard = self.frames.next().await;
    }
}

impl Replies {
    /// Sends a reply in a version of the protocol. In place of one that is too long a refusal is sent.
    ///
    /// # Errors
    /// [`WireError`]: the client does not take it in time.
    pub(super) async fn send(&mut self, version: u32, reply: &Reply) -> Result<(), WireError> {
        let json = match encoded(version, reply, false) {
            Err(error @ FrameError::TooLong { .. }) => {
                encoded(version, &refusal(ErrorKind::NotBuilt, format!("the answer: {error}")), false)?
            }
            encoded => encoded?,
        };
        self.send_encoded(json).await
    }

    /// Sends a reply in parts, as far as it has any.
    ///
    /// # Errors
    /// As [`Replies::send`].
    pub(super) async fn send_in_parts(&mut self, version: u32, reply: Reply) -> Result<(), WireError> {
        let mut parts = reply.into_parts(PART);
        let last = parts.pop();
        for part in parts {
            self.send_encoded(encoded(version, &part, true)?).await?;
        }
        match last {
            Some(last) => self.send(version, &last).await,
            None => Ok(()),
        }
    }

    /// Sends a message's JSON.
    ///
    /// # Errors
    /// [`WireError`]: the client does not take it in time.
    pub(super) async fn send_encoded(&mut self, json: Vec<u8>) -> Result<(), WireError> {
        Ok(timeout(TRANSFER, self.0.send(Bytes::from(json))).await??)
    }
}

/// A reply's JSON, and whether more of it is to come.
///
/// # Errors
/// [`FrameError::TooLong`].
pub(super) fn encoded(version: u32, reply: &Reply, more: bool) -> Result<Vec<u8>, FrameError> {
    frame::json(&Envelope { version, more, ..Envelope::new(reply) })
}

/// A refusal as a reply.
pub(super) fn refusal(kind: ErrorKind, message: impl Into<String>) -> Reply {
    Reply::Error(AgentError { kind, message: message.into() })
}
