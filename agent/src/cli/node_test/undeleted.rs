//! What the test has made and could not delete. Things are deleted where they are dropped, which returns no error; it is told in the end.

use std::sync::{Arc, Mutex, PoisonError};

/// One list, of which everything that deletes has a share.
#[derive(Clone, Debug, Default)]
pub(super) struct Undeleted(Arc<Mutex<Vec<String>>>);

impl Undeleted {
    /// Tells what is left, why, and the cure.
    pub(super) fn tell(&self, what: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    /// All of it so far.
    pub(super) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
