//! One thing done on another processor while this one does another.
//!
//! A new thread begins where its maker runs, and waits for it: the kernel moves it to an idle processor when it happens to balance its load, a
//! third of a millisecond later and more (Linux 6.18). So its maker sends it away at once, and does the work itself if that has not
//! begun by the time it is wanted: the other processors may have been busy.
//!
//! This is a crate of its own because it takes `unsafe` to lend a thread what is on another one's stack and to send it away as well; the
//! plugin forbids itself any.

mod borrowing_thread;
mod processors;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use borrowing_thread::BorrowingThread;
use processors::Processors;
pub use processors::this_processor;

/// Does both, and answers what came of each: `aside` on another processor if one has time for it, `here` on this thread. `aside` may wait for
/// what `here` does, and not the other way around: where no other processor has time, it is done behind it.
///
/// # Panics
/// Where one of them does.
pub fn beside<A: Send, B>(aside: impl FnOnce() -> A + Send, here: impl FnOnce() -> B) -> (A, B) {
    let Some(others) = Processors::others() else {
        let done = here();
        return (aside(), done);
    };
    let (work, answer) = (Mutex::new(Some(aside)), Mutex::new(None));
    let begin = || {
        let begun = locked(&work).take();
        if let Some(work) = begun {
            let done = catch_unwind(AssertUnwindSafe(work));
            *locked(&answer) = Some(done);
        }
    };
    let held = locked(&work);
    // SAFETY: it is dropped below, or as a panic unwinds; and `begin` is older than it.
    let other = unsafe { BorrowingThread::start(&begin) };
    if let Ok(other) = &other {
        // SAFETY: it does not get past the lock.
        unsafe { other.keep_to(&others) };
    }
    drop(held);
    let done = here();
    call_back(&work, other.as_ref().ok());
    begin();
    drop(other);
    let answer = locked(&answer).take();
    match answer {
        Some(Ok(answer)) => (answer, done),
        Some(Err(panic)) => resume_unwind(panic),
        None => unreachable!("whoever takes the work does it, and both have had their turn"),
    }
}

/// Has a thread that has not begun come to this thread's processor: where it is it might wait for long, only to find nothing to do.
fn call_back<W>(work: &Mutex<Option<W>>, other: Option<&BorrowingThread<'_>>) {
    let held = locked(work);
    if let (true, Some(other), Some(this)) = (held.is_some(), other, Processors::this()) {
        // SAFETY: it has not got to the lock yet.
        unsafe { other.keep_to(&this) };
    }
}

fn locked<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::{Duration, Instant};

    use nix::libc::{SCHED_FIFO, sched_param, sched_setscheduler};
    use nix::sched::{CpuSet, sched_setaffinity};
    use nix::unistd::{Pid, gettid};
    use shunt_lab::load::{cpus, pin};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    fn run_only_on(processors: [usize; 2]) {
        let mut set = CpuSet::new();
        processors.into_iter().for_each(|processor| set.set(processor).unwrap());
        sched_setaffinity(Pid::from_raw(0), &set).unwrap();
    }

    /// Works without sleeping until `done`, so that nobody else has this processor. Whether it was.
    fn busy_until(done: impl Fn() -> bool) -> bool {
        let begun = Instant::now();
        while !done() && begun.elapsed() < PATIENCE {}
        done()
    }

    #[test]
    fn both_are_done_with_what_is_on_the_stack() {
        let (words, mut count) = (vec!["one".to_owned(), "two".to_owned()], 0);
        for round in 1..=1000 {
            let joined = beside(|| words.join(" "), || count += 1);
            assert_eq!((joined.0.as_str(), count), ("one two", round));
        }
    }

    #[test]
    fn one_is_done_by_another_thread_while_this_one_has_its_processor() {
        if cpus().unwrap().len() < 2 {
            return;
        }
        let is_done = AtomicBool::new(false);
        let aside = || {
            is_done.store(true, Ordering::Release);
            gettid()
        };
        let (other, was_done) = beside(aside, || busy_until(|| is_done.load(Ordering::Acquire)));
        assert!(was_done && other != gettid());
    }

    #[test]
    fn where_there_is_one_processor_this_thread_does_both() {
        let only = thread::spawn(|| {
            pin(cpus().unwrap()[0]).unwrap();
            beside(gettid, gettid)
        });
        let (aside, here) = only.join().unwrap();
        assert_eq!(aside, here);
    }

    #[test]
    fn what_is_done_aside_may_wait_for_what_is_done_here() {
        let both = || {
            let found = OnceLock::new();
            beside(|| *found.wait(), || found.set(7).is_ok())
        };
        assert_eq!(both(), (7, true));
        let only = thread::spawn(move || {
            pin(cpus().unwrap()[0]).unwrap();
            both()
        });
        assert_eq!(only.join().unwrap(), (7, true));
    }

    /// Has this thread precede all that are not of its kind; false where the control group gets no such time.
    fn precede_everybody() -> bool {
        let least = sched_param { sched_priority: 1 };
        // SAFETY: the kernel reads it.
        unsafe { sched_setscheduler(0, SCHED_FIFO, &least) == 0 }
    }

    #[test]
    fn this_thread_does_what_others_have_no_time_for() {
        let [first, second, ..] = cpus().unwrap()[..] else { return };
        let (busy, stop) = (AtomicBool::new(false), AtomicBool::new(false));
        let (precedes, done) = thread::scope(|scope| {
            let other = scope.spawn(|| {
                pin(second).unwrap();
                let precedes = precede_everybody();
                busy.store(true, Ordering::Release);
                busy_until(|| stop.load(Ordering::Acquire));
                precedes
            });
            let this = scope.spawn(|| {
                // Not on the other's before that is busy there, and nobody lends a hand while it is on its way.
                pin(first).unwrap();
                busy_until(|| busy.load(Ordering::Acquire));
                run_only_on([first, second]);
                let begun = Instant::now();
                let done = beside(gettid, gettid);
                stop.store(true, Ordering::Release);
                (done, begun.elapsed())
            });
            (other.join().unwrap(), this.join().unwrap())
        });
        if !precedes {
            return shunt_lab::skip(shunt_lab::Lacking::Kernel("real time for this control group"));
        }
        let ((aside, here), took) = done;
        assert_eq!(aside, here);
        assert!(took < PATIENCE / 10, "{took:?}");
    }

    #[test]
    fn a_panic_of_either_is_this_ones_and_comes_when_both_have_ended() {
        let has_ended = AtomicBool::new(false);
        let end = || {
            thread::sleep(Duration::from_millis(20));
            has_ended.store(true, Ordering::Release);
        };
        let caught = catch_unwind(AssertUnwindSafe(|| beside(|| panic!("aside"), end)));
        assert!(caught.is_err() && has_ended.swap(false, Ordering::AcqRel));
        let caught = catch_unwind(AssertUnwindSafe(|| beside(end, || panic!("here"))));
        // It may not have begun, and is not begun any more then.
        assert!(caught.is_err());
    }
}
