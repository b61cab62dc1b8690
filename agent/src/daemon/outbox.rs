//! What is said to one client: by the agent's thread itself as far as the socket takes it at once, the rest by the connection's task.
//!
//! That task is not woken for an answer that was taken whole, as nearly every one is, unless it waits to end the connection behind it: it would
//! have the processor just when the client wants it.

use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use shunt_agent_api::frame::FrameError;
use shunt_agent_api::{AgentError, ErrorKind, Reply};
use tokio::sync::Notify;

use super::connection::encode;
use super::stream::Stream;

/// The way to one client.
#[derive(Debug)]
pub(super) struct Outbox {
    stream: Stream,
    state: Mutex<State>,
    /// An answer was given, for whoever waits for it just then.
    answered: Notify,
    /// Something is left for the connection's task.
    left: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Whether the agent's thread has a request. There is one at a time, so answers are never mixed.
    owes: bool,
    /// What the client did not take at once.
    rest: Bytes,
    /// Why there is no answer.
    failed: Option<FrameError>,
}

impl Outbox {
    pub(super) fn new(stream: Stream) -> Arc<Self> {
        Arc::new(Self { stream, state: Mutex::default(), answered: Notify::new(), left: Notify::new() })
    }

    /// The client.
    pub(super) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// For a request that the agent's thread is given now.
    pub(super) fn owe(self: &Arc<Self>) -> Debt {
        self.state().owes = true;
        Debt { outbox: Some(Arc::clone(self)) }
    }

    /// Waits until there is something that the connection's task has to send. Cancelling it loses nothing.
    pub(super) async fn is_left(&self) {
        while !self.state().is_left() {
            self.left.notified().await;
        }
    }

    /// Waits until no answer is owed; what is left to be sent of it.
    ///
    /// # Errors
    /// [`FrameError`]: the answer cannot be sent at all.
    pub(super) async fn rest(&self) -> Result<Bytes, FrameError> {
        loop {
            let answered = self.answered.notified();
            {
                let mut state = self.state();
                if !state.owes {
                    return state.failed.take().map_or_else(|| Ok(take(&mut state.rest)), Err);
                }
            }
            answered.await;
        }
    }

    fn answer(&self, reply: &Reply) {
        let said = encode(reply).map(|mut wire| {
            // What is wrong with the connection is found by whoever sends the rest.
            let taken = self.stream.try_write(&wire).unwrap_or(0);
            wire.split_off(taken)
        });
        let mut state = self.state();
        match said {
            Ok(rest) => state.rest = rest,
            Err(error) => state.failed = Some(error),
        }
    }

    fn forget_debt(&self) {
        let mut state = self.state();
        state.owes = false;
        let is_left = state.is_left();
        drop(state);
        if is_left {
            self.left.notify_one();
        }
        self.answered.notify_waiters();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_left(&self) -> bool {
        !self.rest.is_empty() || self.failed.is_some()
    }
}

/// An answer that a client waits for.
#[derive(Debug)]
pub(super) struct Debt {
    outbox: Option<Arc<Outbox>>,
}

/// An answer that was given, as far as the client took it: while this lives, more is done for that client, and nobody goes on.
#[derive(Debug)]
pub(super) struct Paid {
    outbox: Option<Arc<Outbox>>,
}

impl Debt {
    /// Answers.
    pub(super) fn pay(mut self, reply: &Reply) -> Paid {
        Paid { outbox: self.outbox.take().inspect(|outbox| outbox.answer(reply)) }
    }
}

impl Drop for Debt {
    /// There is no agent any more.
    fn drop(&mut self) {
        if let Some(outbox) = self.outbox.take() {
            outbox.answer(&unavailable());
            outbox.forget_debt();
        }
    }
}

impl Drop for Paid {
    fn drop(&mut self) {
        if let Some(outbox) = self.outbox.take() {
            outbox.forget_debt();
        }
    }
}

/// The answer of an agent that ends.
pub(super) fn unavailable() -> Reply {
    Reply::Error(AgentError { kind: ErrorKind::Unavailable, message: "the agent is stopping".to_owned() })
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use bytes::BytesMut;
    use tokio::time::timeout;

    use super::super::test_runtime::run;
    use super::*;

    fn pair() -> (Arc<Outbox>, Stream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (Outbox::new(Stream::new(ours).unwrap()), Stream::new(theirs).unwrap())
    }

    const MOMENT: Duration = Duration::from_millis(50);

    #[test]
    fn an_answer_that_is_taken_whole_leaves_nothing_and_wakes_nobody() {
        run(async {
            let (outbox, theirs) = pair();
            let debt = outbox.owe();
            assert!(timeout(MOMENT, outbox.rest()).await.is_err(), "it is owed");
            drop(debt.pay(&Reply::Checked));
            assert!(timeout(MOMENT, outbox.is_left()).await.is_err());
            assert!(outbox.rest().await.unwrap().is_empty());
            let mut heard = BytesMut::new();
            theirs.read(&mut heard).await.unwrap();
            assert_eq!(heard, encode(&Reply::Checked).unwrap());
        });
    }

    #[test]
    fn nobody_goes_on_before_what_was_promised_is_done() {
        run(async {
            let (outbox, theirs) = pair();
            let paid = outbox.owe().pay(&Reply::Checked);
            let mut heard = BytesMut::new();
            theirs.read(&mut heard).await.unwrap();
            assert!(!heard.is_empty() && timeout(MOMENT, outbox.rest()).await.is_err());
            drop(paid);
            assert!(outbox.rest().await.unwrap().is_empty());
        });
    }

    #[test]
    fn what_a_client_does_not_take_at_once_is_left_to_the_connection() {
        run(async {
            let (outbox, _theirs) = pair();
            let large = Reply::Error(AgentError { kind: ErrorKind::Malformed, message: "x".repeat(4 << 20) });
            let debt = outbox.owe();
            let waiting = async { timeout(MOMENT, outbox.is_left()).await };
            let paying = async { drop(debt.pay(&large)) };
            let (waited, ()) = tokio::join!(waiting, paying);
            waited.unwrap();
            let rest = outbox.rest().await.unwrap();
            let whole = encode(&large).unwrap();
            assert!(!rest.is_empty() && whole.ends_with(&rest));
            assert!(outbox.rest().await.unwrap().is_empty(), "it is told once");
        });
    }

    #[test]
    fn who_waits_for_the_answer_hears_of_it_and_of_an_agent_that_ends() {
        run(async {
            let (outbox, _theirs) = pair();
            for ends in [false, true] {
                let debt = outbox.owe();
                let giving = async { if ends { drop(debt) } else { drop(debt.pay(&Reply::Checked)) } };
                let (rest, ()) = tokio::join!(timeout(MOMENT, outbox.rest()), giving);
                assert!(rest.unwrap().unwrap().is_empty());
            }
        });
    }
}
