//! How many there may be of one kind, and how many of them one user may have.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A bound for all users of a gate together.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    all: Arc<Semaphore>,
    /// The most that one user may have.
    most: usize,
    /// What is left of each user's own share. A user who has nothing is forgotten, so there are no more entries than permits.
    users: Arc<Mutex<HashMap<u32, Arc<Semaphore>>>>,
}

/// One of all, and one of the user's own.
#[derive(Debug)]
pub(crate) struct Permit {
    _all: OwnedSemaphorePermit,
    _own: OwnedSemaphorePermit,
}

impl Bound {
    /// `all` together, `most` of them for one user.
    pub(crate) fn of(all: usize, most: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(all)), most, users: Arc::default() }
    }

    /// None where all are taken, or all of this user's.
    pub(crate) fn take(&self, user: u32) -> Option<Permit> {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        users.retain(|_, own| own.available_permits() < self.most);
        let own = Arc::clone(users.entry(user).or_insert_with(|| Arc::new(Semaphore::new(self.most))));
        let _own = own.try_acquire_owned().ok()?;
        drop(users);
        let _all = Arc::clone(&self.all).try_acquire_owned().ok()?;
        Some(Permit { _all, _own })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_takes_its_share_and_leaves_the_others_theirs() {
        let bound = Bound::of(3, 2);
        let first = [bound.take(1), bound.take(1)].map(Option::unwrap);
        assert!(bound.take(1).is_none(), "it has its share");
        let other = bound.take(2).unwrap();
        assert!(bound.take(3).is_none(), "all are taken");
        drop((first, other));
        let _again = [bound.take(1), bound.take(1)].map(Option::unwrap);
    }

    #[test]
    fn users_that_have_nothing_are_forgotten() {
        let bound = Bound::of(3, 2);
        let kept = bound.take(0).unwrap();
        for user in 1..1000 {
            drop(bound.take(user).unwrap());
        }
        assert!(bound.users.lock().unwrap().len() <= 2);
        drop(kept);
    }
}
