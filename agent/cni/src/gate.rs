//! How many there may be at a time, and for whom.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::failure::{Failure, codes};

/// How long a call waits for others about the same attachment or network.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// How many there may be for root, or for the group's members. No member takes a place of root's.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    pub(crate) connections: Arc<Semaphore>,
    /// Calls that are done or wait: each costs a few kilobytes.
    pub(crate) calls: Arc<Semaphore>,
    /// Calls that are done: each has a message of at most 1 MiB, and a thread.
    pub(crate) places: Arc<Semaphore>,
    /// Calls whose message is read, and that wait for others about the same attachment or network.
    pub(crate) parked: Arc<Semaphore>,
    /// Those that watch.
    pub(crate) watchers: Arc<Semaphore>,
}

/// One of the places for calls that are done at a time. Whoever works for the call has it, too.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    #[allow(dead_code, reason = "it is held")]
    permit: Arc<OwnedSemaphorePermit>,
    gate: Gate,
}

impl Gate {
    pub(crate) fn of([connections, calls, places, parked, watchers]: [usize; 5]) -> Self {
        let [connections, calls, places, parked, watchers] =
            [connections, calls, places, parked, watchers].map(|most| Arc::new(Semaphore::new(most)));
        Self { connections, calls, places, parked, watchers }
    }

    /// Waits for a place; none once nobody is let in any more.
    pub(crate) async fn enter(&self) -> Option<Place> {
        let permit = Arc::clone(&self.places).acquire_owned().await.ok()?;
        Some(Place { permit: Arc::new(permit), gate: self.clone() })
    }
}

/// Waits until others are done. Meanwhile `place` is given to somebody else, so that no number of calls about one attachment keeps the other
/// attachments waiting.
///
/// # Errors
/// Code 11: too many wait, or the others take too long.
pub(crate) async fn wait<T>(
    place: &mut Option<Place>,
    others: impl Future<Output = T>,
) -> Result<T, Failure> {
    let mut others = std::pin::pin!(others);
    if let Some(done) = others.as_mut().now_or_never() {
        return Ok(done);
    }
    let gate = place.as_ref().map(|place| place.gate.clone());
    let parked = gate.as_ref().map(|gate| gate.parked.try_acquire()).transpose();
    let Ok(parked) = parked else {
        return Err(Failure::new(codes::TRY_AGAIN, "too many calls wait for others, try again"));
    };
    *place = None;
    let done = timeout(LONGEST_WAIT, others).await.map_err(|_| {
        let why = format!("another call about the same attachment or network has not ended within {LONGEST_WAIT:?}, try again");
        Failure::new(codes::TRY_AGAIN, why)
    })?;
    if let Some(gate) = &gate {
        *place = gate.enter().await;
    }
    drop(parked);
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate() -> Gate {
        Gate::of([1, 9, 1, 1, 1])
    }

    #[tokio::test]
    async fn who_waits_for_others_has_no_place_meanwhile() {
        let (gate, (others, done)) = (gate(), tokio::sync::oneshot::channel::<()>());
        let mut place = gate.enter().await;
        let waiting = wait(&mut place, done);
        let meanwhile = async {
            let another = gate.enter().await.unwrap();
            others.send(()).unwrap();
            another
        };
        let (waited, another) = tokio::join!(timeout(Duration::from_millis(20), waiting), meanwhile);
        assert!(waited.is_err(), "the place is another one's now");
        assert!(place.is_none());
        drop(another);
        wait(&mut place, async {}).await.unwrap();
    }

    #[tokio::test]
    async fn one_too_many_is_refused_and_keeps_its_place() {
        let gate = gate();
        let mut place = gate.enter().await;
        let _parked = gate.parked.try_acquire().unwrap();
        let refused = wait(&mut place, std::future::pending::<()>()).await.unwrap_err();
        assert_eq!((refused.code, place.is_some()), (codes::TRY_AGAIN, true));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_ever() {
        let gate = gate();
        let refused = wait(&mut gate.enter().await, std::future::pending::<()>()).await.unwrap_err();
        assert!(refused.code == codes::TRY_AGAIN && refused.msg.contains("60s"), "{refused:?}");
    }
}
