//! An answer that the client reads at its own pace, and that costs it the call until it has: what is unread cannot grow with the number of calls.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::HeaderMap;
use http_body_util::BodyExt as _;
use hyper::Response;
use hyper::body::{Body as _, Bytes, Frame};
use tokio::task::AbortHandle;
use tokio::time::sleep;
use tonic::Status;
use tonic::body::Body;

use crate::shares::Permit;

/// How long a client may take to read an answer. After that the answer is gone: its stream fails, the connection stays.
const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes that the connection is given at a time: so much it keeps of a stream whose client reads nothing more.
const PIECE: usize = 16 << 10;

/// In a response's extensions: it is a stream without an end of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Streamed;

/// What is still to be read.
#[derive(Debug)]
enum Rest {
    Unread { data: Bytes, trailers: Option<HeaderMap>, _call: Permit },
    Read,
    Late,
}

#[derive(Debug)]
struct Answer {
    rest: Arc<Mutex<Rest>>,
    /// Ends the patience, which nobody needs who has read it.
    timer: AbortHandle,
}

/// Makes a response keep its call until it is read.
pub(crate) async fn until_read(response: Response<Body>, call: Permit) -> Response<Body> {
    if response.extensions().get::<Streamed>().is_some() {
        return response;
    }
    let (head, body) = response.into_parts();
    if body.is_end_stream() {
        return Response::from_parts(head, body);
    }
    let collected = match body.collect().await {
        Ok(collected) => collected,
        Err(status) => return status.into_http(),
    };
    let trailers = collected.trailers().cloned();
    let body = Answer::of(Rest::Unread { data: collected.to_bytes(), trailers, _call: call });
    Response::from_parts(head, Body::new(body))
}

impl Answer {
    fn of(rest: Rest) -> Self {
        let rest = Arc::new(Mutex::new(rest));
        let kept = Arc::clone(&rest);
        // The connection asks for nothing as long as the client takes nothing: it cannot be the one that looks at the time.
        let timer = tokio::spawn(async move {
            sleep(PATIENCE).await;
            *lock(&kept) = Rest::Late;
        });
        Self { rest, timer: timer.abort_handle() }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.timer.abort();
        *lock(&self.rest) = Rest::Read;
    }
}

impl hyper::body::Body for Answer {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let mut rest = lock(&self.rest);
        let frame = match &mut *rest {
            Rest::Unread { data, .. } if !data.is_empty() => {
                Some(Ok(Frame::data(data.split_to(data.len().min(PIECE)))))
            }
            Rest::Unread { trailers, .. } => trailers.take().map(|trailers| Ok(Frame::trailers(trailers))),
            Rest::Read => None,
            Rest::Late => {
                Some(Err(Status::deadline_exceeded(format!("the answer was not read within {PATIENCE:?}"))))
            }
        };
        if matches!(&*rest, Rest::Unread { data, trailers: None, .. } if data.is_empty()) {
            *rest = Rest::Read;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        matches!(*lock(&self.rest), Rest::Read)
    }
}

fn lock(rest: &Mutex<Rest>) -> MutexGuard<'_, Rest> {
    rest.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use http_body_util::{Full, combinators::WithTrailers};
    use std::future::ready;

    use super::*;
    use crate::shares::Bound;

    type Trailed =
        WithTrailers<Full<Bytes>, std::future::Ready<Option<Result<HeaderMap, std::convert::Infallible>>>>;

    fn trailed(length: usize) -> Trailed {
        let trailers: HeaderMap =
            [("grpc-status".parse().unwrap(), "0".parse().unwrap())].into_iter().collect();
        Full::new(Bytes::from(vec![7; length])).with_trailers(ready(Some(Ok(trailers))))
    }

    #[tokio::test]
    async fn an_answer_is_whole_and_keeps_its_call_until_it_is_read() {
        let calls = Bound::of(1, 1);
        let response = Response::new(Body::new(trailed(3 * PIECE + 1)));
        let mut body = until_read(response, calls.take(0).unwrap()).await.into_body();
        let mut pieces = Vec::new();
        while let Some(frame) = body.frame().await.transpose().unwrap() {
            assert_eq!(calls.take(0).is_some(), frame.is_trailers());
            pieces.push(frame.into_data().map_or(0, |data| data.len()));
        }
        assert_eq!(pieces, [PIECE, PIECE, PIECE, 1, 0]);
        assert!(body.is_end_stream());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_nobody_reads_is_gone_after_a_while() {
        let calls = Bound::of(1, 1);
        let response = Response::new(Body::new(trailed(PIECE)));
        let mut body = until_read(response, calls.take(0).unwrap()).await.into_body();
        sleep(PATIENCE / 2).await;
        assert!(calls.take(0).is_none());
        sleep(PATIENCE).await;
        assert!(calls.take(0).is_some());
        assert!(body.frame().await.unwrap().is_err());
    }

    #[tokio::test]
    async fn an_answer_that_is_dropped_ends_the_call() {
        let calls = Bound::of(1, 1);
        let response = Response::new(Body::new(trailed(1)));
        let body = until_read(response, calls.take(0).unwrap()).await;
        drop(body);
        assert!(calls.take(0).is_some());
    }
}
