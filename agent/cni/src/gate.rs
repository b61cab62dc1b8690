//! How many there may be at a time, and for whom.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::failure::{Failure, codes};
use crate::inbox::Inbox;
use crate::shares::Bound;

/// How long a call waits for others about the same attachment or network.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// How many there may be for root, or for the group's members. No member takes a place of root's.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    pub(crate) connections: Bound,
    /// Calls whose message is on its way, that wait, are done, or whose answer is on its way.
    pub(crate) calls: Bound,
    /// Calls that are done: each has a message of at most 1 MiB, and a thread.
    pub(crate) places: Arc<Semaphore>,
    /// Calls that wait for others about the same attachment or network.
    pub(crate) parked: Arc<Semaphore>,
    /// Those that watch.
    pub(crate) watchers: Bound,
    /// The longest message, and what there is for the messages that are on their way.
    pub(crate) inbox: Inbox,
}

/// The numbers of a gate. Of connections, calls and watchers all together, and those of one user.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) connections: [usize; 2],
    pub(crate) calls: [usize; 2],
    pub(crate) places: usize,
    pub(crate) parked: usize,
    pub(crate) watchers: [usize; 2],
    /// Bytes of a message.
    pub(crate) message: usize,
}

/// One of the places for calls that are done at a time. Whoever works for the call has it, too: a clone is the same place, which all of them
/// leave and come back to together.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    permit: Arc<Mutex<Option<OwnedSemaphorePermit>>>,
    gate: Gate,
}

impl Place {
    fn slot(&self) -> MutexGuard<'_, Option<OwnedSemaphorePermit>> {
        self.permit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the place to somebody else, whoever has a clone.
    fn leave(&self) {
        drop(self.slot().take());
    }

    /// Waits for a place unless there is one; none once nobody is let in any more.
    async fn come_back(&self) {
        if self.slot().is_some() {
            return;
        }
        let again = Arc::clone(&self.gate.places).acquire_owned().await.ok();
        *self.slot() = again;
    }
}

impl Gate {
    pub(crate) fn of(limits: Limits) -> Self {
        let bound = |[all, most]: [usize; 2]| Bound::of(all, most);
        let semaphore = |most| Arc::new(Semaphore::new(most));
        Self {
            connections: bound(limits.connections),
            calls: bound(limits.calls),
            places: semaphore(limits.places),
            parked: semaphore(limits.parked),
            watchers: bound(limits.watchers),
            inbox: Inbox::of(limits.message),
        }
    }

    /// Waits for a place; none once nobody is let in any more.
    pub(crate) async fn enter(&self) -> Option<Place> {
        let permit = Arc::clone(&self.places).acquire_owned().await.ok()?;
        Some(Place { permit: Arc::new(Mutex::new(Some(permit))), gate: self.clone() })
    }
}

/// Waits until others are done. Meanwhile `place` is given to somebody else, so that no number of calls about one attachment keeps the other
/// attachments waiting. A call that has lost its place at an earlier wait gets one again.
///
/// # Errors
/// Code 11: too many wait, or the others take too long.
pub(crate) async fn wait<T>(place: Option<&Place>, others: impl Future<Output = T>) -> Result<T, Failure> {
    let mut others = std::pin::pin!(others);
    if let Some(done) = others.as_mut().now_or_never() {
        come_back(place).await;
        return Ok(done);
    }
    let parked = place.map(|place| place.gate.parked.try_acquire()).transpose();
    let Ok(parked) = parked else {
        return Err(Failure::new(codes::TRY_AGAIN, "too many calls wait for others, try again"));
    };
    if let Some(place) = place {
        place.leave();
    }
    let done = timeout(LONGEST_WAIT, others).await.map_err(|_| {
        let why = format!("another call about the same attachment or network has not ended within {LONGEST_WAIT:?}, try again");
        Failure::new(codes::TRY_AGAIN, why)
    })?;
    come_back(place).await;
    drop(parked);
    Ok(done)
}

async fn come_back(place: Option<&Place>) {
    if let Some(place) = place {
        place.come_back().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate() -> Gate {
        let (connections, calls, watchers) = ([1, 1], [9, 9], [1, 1]);
        Gate::of(Limits { connections, calls, places: 1, parked: 1, watchers, message: 1 })
    }

    #[tokio::test]
    async fn who_waits_for_others_has_no_place_meanwhile() {
        let (gate, (others, done)) = (gate(), tokio::sync::oneshot::channel::<()>());
        let place = gate.enter().await;
        let waiting = wait(place.as_ref(), done);
        let meanwhile = async {
            let another = gate.enter().await.unwrap();
            others.send(()).unwrap();
            another
        };
        let (waited, another) = tokio::join!(timeout(Duration::from_millis(20), waiting), meanwhile);
        assert!(waited.is_err(), "the place is another one's now");
        assert!(place.as_ref().unwrap().slot().is_none());
        drop(another);
        wait(place.as_ref(), async {}).await.unwrap();
        assert!(place.unwrap().slot().is_some(), "it is back");
    }

    /// As the draft's calls, which keep one and give another one to the call that does them.
    #[tokio::test]
    async fn a_clone_keeps_no_place_while_another_one_waits() {
        let (gate, (others, done)) = (gate(), tokio::sync::oneshot::channel::<()>());
        let kept = gate.enter().await.unwrap();
        let given = kept.clone();
        let waiting = wait(Some(&given), done);
        let meanwhile = async {
            let another = timeout(Duration::from_secs(5), gate.enter()).await;
            drop(another.expect("the clone has the place").unwrap());
            others.send(()).unwrap();
        };
        let both = async { tokio::join!(waiting, meanwhile).0 };
        timeout(Duration::from_secs(5), both).await.expect("it waits for itself").unwrap().unwrap();
        assert!(kept.slot().is_some());
        drop(given);
        assert_eq!(gate.places.available_permits(), 0, "the call is still done");
        drop(kept);
        assert_eq!(gate.places.available_permits(), 1);
    }

    #[tokio::test]
    async fn one_too_many_is_refused_and_keeps_its_place() {
        let gate = gate();
        let place = gate.enter().await.unwrap();
        let _parked = gate.parked.try_acquire().unwrap();
        let refused = wait(Some(&place), std::future::pending::<()>()).await.unwrap_err();
        assert_eq!((refused.code, place.slot().is_some()), (codes::TRY_AGAIN, true));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_ever() {
        let gate = gate();
        let place = gate.enter().await;
        let refused = wait(place.as_ref(), std::future::pending::<()>()).await.unwrap_err();
        assert!(refused.code == codes::TRY_AGAIN && refused.msg.contains("60s"), "{refused:?}");
    }
}
