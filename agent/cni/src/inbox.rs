//! A call's message is read before the call gets a place, so that no client that sends slowly, or not at all, keeps the others from one.
//!
//! A short message fits into what a stream may send unasked (its HTTP/2 window). A longer one waits, unread, until there is room for it; the connection's window has
//! room for that much of every stream, so those that wait stop none of those that are read.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::{Body, Bytes};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tonic::Status;

use crate::failure::{Failure, codes};

/// Bytes of a stream that may wait unread: a message that has no more needs no room.
pub(crate) const UNASKED: u32 = 16 << 10;

/// Bytes of longer messages that are read, or wait for a place, in units of a kilobyte.
const ROOM: usize = 64 << 10;
const UNIT: usize = 1 << 10;

/// How long a message may take to arrive, once it may.
const PATIENCE: Duration = Duration::from_secs(10);

/// What precedes a message (gRPC over HTTP/2, "Length-Prefixed-Message"): whether it is compressed, and its length.
const PREFIX: usize = 5;

/// How long a message may be, and the room for those that are longer than [`UNASKED`].
#[derive(Clone, Debug)]
pub(crate) struct Inbox {
    longest: usize,
    room: Arc<Semaphore>,
}

/// A message with its prefix, and the room that it takes.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) bytes: Bytes,
    pub(crate) room: Option<OwnedSemaphorePermit>,
}

/// What has arrived of a body.
struct Arrived<B> {
    body: B,
    bytes: Vec<u8>,
    is_whole: bool,
}

impl Inbox {
    pub(crate) fn of(longest: usize) -> Self {
        Self { longest, room: Arc::new(Semaphore::new(ROOM)) }
    }

    /// Reads the one message of a body.
    ///
    /// # Errors
    /// `OUT_OF_RANGE` for one that is too long, `INVALID_ARGUMENT` for more than one, code 11 for one that does not arrive. Nothing was begun.
    pub(crate) async fn read<B>(&self, body: B) -> Result<Message, Status>
    where
        B: Body<Data = Bytes, Error: std::fmt::Display> + Unpin,
    {
        let mut arrived = Arrived { body, bytes: Vec::new(), is_whole: false };
        arrived.read(PREFIX).await?;
        let length = arrived.length();
        if length > self.longest {
            let why = format!("the message has {length} bytes, more than {}", self.longest);
            return Err(Status::out_of_range(why));
        }
        let room = if length > UNASKED as usize { Some(self.room_for(length).await?) } else { None };
        arrived.bytes.reserve_exact((PREFIX + length).saturating_sub(arrived.bytes.len()));
        // The end has to be seen, too.
        arrived.read(PREFIX + length + 1).await?;
        if arrived.bytes.len() > PREFIX + length {
            return Err(Status::invalid_argument("the call has more than one message"));
        }
        Ok(Message { bytes: arrived.bytes.into(), room })
    }

    /// Waits for it: the call's own deadline ends that.
    async fn room_for(&self, length: usize) -> Result<OwnedSemaphorePermit, Status> {
        let units = u32::try_from(length.div_ceil(UNIT)).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room).acquire_many_owned(units).await;
        room.map_err(|_| Failure::new(codes::TRY_AGAIN, "the service ends, try again").into())
    }
}

impl<B: Body<Data = Bytes, Error: std::fmt::Display> + Unpin> Arrived<B> {
    /// Until there are so many bytes, or the end.
    async fn read(&mut self, least: usize) -> Result<(), Status> {
        let late = |_| {
            let why =
                format!("the message has not arrived within {PATIENCE:?}: nothing was begun, try again");
            Failure::new(codes::TRY_AGAIN, why)
        };
        timeout(PATIENCE, self.read_at_leisure(least)).await.map_err(late)?
    }

    async fn read_at_leisure(&mut self, least: usize) -> Result<(), Status> {
        while self.bytes.len() < least && !self.is_whole {
            match self.body.frame().await {
                Some(Ok(frame)) => self.bytes.extend(frame.into_data().unwrap_or_default()),
                Some(Err(error)) => return Err(Status::cancelled(format!("the message: {error}"))),
                None => self.is_whole = true,
            }
        }
        Ok(())
    }

    /// What the prefix says; nothing of a body that is shorter than that.
    fn length(&self) -> usize {
        let prefix = self.bytes.get(1..PREFIX).and_then(|length| length.try_into().ok());
        usize::try_from(u32::from_be_bytes(prefix.unwrap_or_default())).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{Channel, Full};
    use tonic::Code;

    use super::*;

    fn framed(length: usize) -> Bytes {
        let mut bytes = vec![0; PREFIX + length];
        bytes[1..PREFIX].copy_from_slice(&u32::try_from(length).unwrap().to_be_bytes());
        bytes.into()
    }

    #[tokio::test]
    async fn a_message_is_read_whole_or_refused() {
        let inbox = Inbox::of(100_000);
        for (length, units) in [(0, 0), (UNASKED as usize, 0), (99_999, 98)] {
            let message = inbox.read(Full::new(framed(length))).await.unwrap();
            assert_eq!(message.bytes, framed(length));
            assert_eq!(inbox.room.available_permits(), ROOM - units, "{length}");
        }
        assert_eq!(inbox.room.available_permits(), ROOM, "the room is given back");
        let refused = async |body: Bytes| inbox.read(Full::new(body)).await.unwrap_err().code();
        assert_eq!(refused(framed(100_001)).await, Code::OutOfRange);
        assert_eq!(refused([framed(1), framed(1)].concat().into()).await, Code::InvalidArgument);
        // What is too short is judged by whoever decodes it.
        assert_eq!(inbox.read(Full::new(Bytes::from_static(b"\0\0"))).await.unwrap().bytes, &b"\0\0"[..]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_that_does_not_arrive_is_late_and_gives_its_room_back() {
        let inbox = Inbox::of(1 << 20);
        let (mut sender, body) = Channel::<Bytes, std::convert::Infallible>::new(1);
        sender.send_data(framed(1 << 20).slice(..100)).await.unwrap();
        let late = inbox.read(body).await.unwrap_err();
        assert_eq!(Failure::of_status(&late).unwrap().unwrap().code, codes::TRY_AGAIN);
        assert_eq!(inbox.room.available_permits(), ROOM);
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_message_waits_for_room_and_a_short_one_does_not() {
        let inbox = Inbox::of(1 << 20);
        let all = inbox.room_for(ROOM * UNIT).await.unwrap();
        inbox.read(Full::new(framed(7))).await.unwrap();
        let waiting = timeout(2 * PATIENCE, inbox.read(Full::new(framed(1 << 20)))).await;
        assert!(waiting.is_err(), "{waiting:?}");
        drop(all);
        inbox.read(Full::new(framed(1 << 20))).await.unwrap();
    }
}
