//! Whether the way is free, which one thread finds out and another one waits to hear.

use std::sync::OnceLock;

/// What is known of it so far.
#[derive(Debug, Default)]
pub(super) struct Way(OnceLock<bool>);

/// Somebody is on it. It is not free where this goes before it was found so.
#[derive(Debug)]
pub(super) struct Exploring<'a>(&'a Way);

impl Way {
    /// Sets out.
    pub(super) fn explore(&self) -> Exploring<'_> {
        Exploring(self)
    }

    /// Waits for whoever has set out or will.
    pub(super) fn is_free(&self) -> bool {
        *self.0.wait()
    }
}

impl Exploring<'_> {
    /// Nothing is in the way.
    pub(super) fn finds_it_free(self) {
        let _nobody_else_says = self.0.0.set(true);
    }
}

impl Drop for Exploring<'_> {
    fn drop(&mut self) {
        let _found_free = self.0.0.set(false);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn whoever_waits_hears_what_was_found() {
        for is_free in [true, false] {
            let way = Way::default();
            thread::scope(|scope| {
                let waiting = scope.spawn(|| way.is_free());
                thread::sleep(Duration::from_millis(5));
                let exploring = way.explore();
                if is_free {
                    exploring.finds_it_free();
                } else {
                    drop(exploring);
                }
                assert_eq!(waiting.join().unwrap(), is_free);
            });
        }
    }

    #[test]
    fn whoever_does_not_come_back_has_not_found_it_free() {
        let way = Way::default();
        let lost = catch_unwind(AssertUnwindSafe(|| {
            let _exploring = way.explore();
            panic!("lost");
        }));
        assert!(lost.is_err() && !way.is_free());
    }
}
