//! What blocks, on a thread beside the runtime; and what is done when nobody waits for it any more.

use std::sync::mpsc;
use std::thread;

use tokio::sync::oneshot;

use crate::failure::{Failure, codes};

/// Does `work` on a thread of its own. Dropping this future ends no work: it is done to its end, and if it succeeds `undo` follows it. So a
/// client either has the answer, or can ask for the opposite and finds nothing.
///
/// # Errors
/// Those of `work`; code 11 where there is no thread.
pub(crate) async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    undo: impl FnOnce() + Send + 'static,
) -> Result<T, Failure> {
    let (answer, answered) = oneshot::channel();
    let run = move || {
        // The receiver of the answer says that it has it; if it is dropped instead, before or after the answer has been sent, this ends.
        let (heard, hears) = mpsc::channel::<()>();
        let done = work();
        let is_done = done.is_ok();
        let is_gone = answer.send((done, heard)).is_err();
        if is_done && (is_gone || hears.recv().is_err()) {
            undo();
        }
    };
    let thread = thread::Builder::new().name("cni-call".into()).spawn(run);
    thread.map_err(|error| {
        Failure::new(codes::TRY_AGAIN, format!("there is no thread for the call: {error}"))
    })?;
    let broken = |_| Failure::new(codes::OTHER, "the call ended by a fault of the service");
    let (done, heard) = answered.await.map_err(broken)?;
    let _its_thread_waits = heard.send(());
    done
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    #[tokio::test]
    async fn what_is_heard_stays_done() {
        let (undone, told) = channel();
        assert_eq!(on_thread(|| Ok(1), move || undone.send(()).unwrap()).await.unwrap(), 1);
        // The sender is dropped with what would have undone it.
        assert!(told.recv_timeout(PATIENCE).is_err());
    }

    #[tokio::test]
    async fn what_nobody_waits_for_is_undone() {
        let (undone, told) = channel();
        let (go, going) = channel::<()>();
        let work = move || {
            going.recv_timeout(PATIENCE).unwrap();
            Ok(())
        };
        let waiting = on_thread(work, move || undone.send(()).unwrap());
        assert!(timeout(Duration::from_millis(10), waiting).await.is_err());
        go.send(()).unwrap();
        told.recv_timeout(PATIENCE).unwrap();
    }

    #[tokio::test]
    async fn an_answer_that_is_sent_and_not_taken_is_undone() {
        let (undone, told) = channel();
        let (go, going) = channel::<()>();
        let work = move || {
            going.recv_timeout(PATIENCE).unwrap();
            Ok(())
        };
        let mut waiting = Box::pin(on_thread(work, move || undone.send(()).unwrap()));
        // Begun, and never looked at again.
        let begun = std::future::poll_fn(|context| {
            assert!(waiting.as_mut().poll(context).is_pending());
            std::task::Poll::Ready(())
        });
        begun.await;
        go.send(()).unwrap();
        thread::sleep(Duration::from_millis(50));
        drop(waiting);
        told.recv_timeout(PATIENCE).unwrap();
    }

    #[tokio::test]
    async fn what_has_failed_is_not_undone() {
        let (undone, told) = channel();
        let failed = on_thread::<()>(|| Err(Failure::new(7, "no")), move || undone.send(()).unwrap()).await;
        assert_eq!(failed.unwrap_err().code, 7);
        assert!(told.recv_timeout(PATIENCE).is_err());
    }
}
