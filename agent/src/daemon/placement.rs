//! On which processors the agent works: not on that of a client who is still at work.
//!
//! The kernel takes whoever wakes a thread through a socket for one that is about to sleep (`WF_SYNC`, `wake_affine_idle`,
//! kernel/sched/fair.c), and has the two share a processor. A plugin goes on, though: it makes interfaces and addresses while the
//! agent attaches. Where processors share a cache the kernel finds an idle one nevertheless; elsewhere, as in many virtual machines, the agent
//! would not begin before the plugin waits for it, although a processor is idle: 0.2 of an ADD's 2.7 ms.
//!
//! With one client the agent's threads stay off its processor. Among several there is nothing to be gained, and they run wherever
//! there is room.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::{Pid, gettid};

/// Where the threads that work for clients may run.
#[derive(Clone, Debug)]
pub(super) struct Placement {
    /// Never placed: it may run where whoever manages the node has the agent run.
    free: Pid,
    placed: [Pid; 2],
    seats: Arc<Mutex<Seats>>,
}

#[derive(Debug, Default)]
struct Seats {
    guests: usize,
    /// Whether the threads were to stay off a processor.
    is_kept_off: bool,
}

/// A client, for as long as it is served.
#[derive(Debug)]
pub(super) struct Guest(Placement);

impl Placement {
    /// Of these threads, by the one that calls this and may run wherever the agent may.
    pub(super) fn new(placed: [Pid; 2]) -> Self {
        Self { free: gettid(), placed, seats: Arc::default() }
    }

    /// Makes room for a client on its processor, if that is known.
    pub(super) fn receive(&self, processor: Option<usize>) -> Guest {
        let mut seats = self.seats();
        seats.guests += 1;
        match processor.filter(|_| seats.guests == 1) {
            Some(processor) => {
                seats.is_kept_off = true;
                self.place(|allowed| without(allowed, processor));
            }
            None => self.run_anywhere(&mut seats),
        }
        Guest(self.clone())
    }

    fn leave(&self) {
        let mut seats = self.seats();
        seats.guests -= 1;
        self.run_anywhere(&mut seats);
    }

    fn run_anywhere(&self, seats: &mut Seats) {
        if std::mem::take(&mut seats.is_kept_off) {
            self.place(Some);
        }
    }

    /// The kernel may refuse, as with more processors than a set holds: then a thread stays where it is.
    fn place(&self, choose: impl FnOnce(CpuSet) -> Option<CpuSet>) {
        let Some(chosen) = sched_getaffinity(self.free).ok().and_then(choose) else { return };
        for thread in self.placed {
            let _refused = sched_setaffinity(thread, &chosen);
        }
    }

    fn seats(&self) -> MutexGuard<'_, Seats> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// All but one processor; none where that is all there are.
fn without(mut allowed: CpuSet, processor: usize) -> Option<CpuSet> {
    allowed.unset(processor).ok()?;
    (allowed != CpuSet::new()).then_some(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(processors: &[usize]) -> CpuSet {
        let mut set = CpuSet::new();
        for processor in processors {
            set.set(*processor).unwrap();
        }
        set
    }

    #[test]
    fn the_last_processor_is_not_given_up() {
        assert_eq!(without(set(&[0, 1, 5]), 1), Some(set(&[0, 5])));
        assert_eq!(without(set(&[0, 5]), 1), Some(set(&[0, 5])), "it was not allowed in any case");
        assert_eq!(without(set(&[3]), 3), None);
        assert_eq!(without(set(&[3]), CpuSet::count()), None, "no such processor");
    }

    #[test]
    fn one_client_has_its_processor_to_itself_and_several_have_not() {
        let this = gettid();
        let everywhere = sched_getaffinity(this).unwrap();
        let first = shunt_lab::load::cpus().unwrap()[0];
        let Some(elsewhere) = without(everywhere, first) else { return };
        let (report, reported) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || {
            report.send(gettid()).unwrap();
            let _ended = ended.recv();
        });
        let thread = reported.recv().unwrap();
        let placement = Placement::new([thread, thread]);
        let now = || sched_getaffinity(thread).unwrap();

        let one = placement.receive(Some(first));
        assert_eq!(now(), elsewhere);
        let another = placement.receive(Some(first));
        assert_eq!(now(), everywhere, "there are two");
        drop(one);
        assert_eq!(now(), everywhere);
        drop(another);
        let one = placement.receive(Some(first));
        assert_eq!(now(), elsewhere, "the others have left");
        drop(one);
        let lost = placement.receive(None);
        assert_eq!(now(), everywhere, "nobody knows where it is");
        drop(lost);
        assert_eq!(now(), everywhere);

        drop(end);
        other.join().unwrap();
    }
}
