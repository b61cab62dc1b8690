//! A connection whose client has to begin within a time: until it has said HTTP/2's preface and a frame's head, nothing else looks after it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Bytes of the preface (RFC 9113, 3.4) and of the head of the SETTINGS that follow it.
const BEGINNING: usize = 24 + 9;

/// How long they may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Reading fails with `TimedOut` once the client has taken too long to begin.
#[derive(Debug)]
pub(crate) struct Arriving<S> {
    stream: S,
    /// What is still to be read, and until when; none once the client has begun.
    missing: Option<(usize, Pin<Box<Sleep>>)>,
}

impl<S> Arriving<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, missing: Some((BEGINNING, Box::pin(sleep(PATIENCE)))) }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Arriving<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let Some((missing, late)) = &mut self.missing else { return read };
        match read {
            Poll::Ready(_) => {
                *missing = missing.saturating_sub(buffer.filled().len() - before);
                if *missing == 0 {
                    self.missing = None;
                }
                read
            }
            Poll::Pending => late.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into())),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Arriving<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_begin_is_late() {
        let (mut client, server) = duplex(64);
        let mut server = Arriving::new(server);
        client.write_all(&[0; BEGINNING - 1]).await.unwrap();
        server.read_exact(&mut [0; BEGINNING - 1]).await.unwrap();
        let late = server.read_u8().await.unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_has_begun_may_be_silent() {
        let (mut client, server) = duplex(64);
        let mut server = Arriving::new(server);
        client.write_all(&[0; BEGINNING]).await.unwrap();
        server.read_exact(&mut [0; BEGINNING]).await.unwrap();
        let silence = tokio::time::timeout(10 * PATIENCE, server.read_u8()).await;
        assert!(silence.is_err(), "{silence:?}");
        server.write_all(&[1]).await.unwrap();
        assert_eq!(client.read_u8().await.unwrap(), 1);
    }
}
