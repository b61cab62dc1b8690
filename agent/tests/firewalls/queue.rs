//! A reader of a queue of packets (NFQUEUE), which gives all of them the same verdict.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use nfq::Queue;
use shunt_lab::{Lab, Namespace, patience};

/// The queue's number.
const QUEUE: u16 = 7;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Verdict {
    Accept,
    Refuse,
}

/// How long that may take on a busy machine.
const LET_GO: Duration = Duration::from_secs(10);

/// Ends with its value.
pub(crate) struct Reader {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    pub(crate) fn start(namespace: &Namespace, verdict: Verdict) -> Self {
        let mut queue = namespace.enter(open).unwrap();
        bind(&mut queue);
        queue.set_nonblocking(true);
        let is_over = Arc::new(AtomicBool::new(false));
        let over = is_over.clone();
        let read = move || {
            while !over.load(Ordering::Relaxed) {
                let Ok(mut message) = queue.recv() else {
                    sleep(Duration::from_micros(200));
                    continue;
                };
                message.set_verdict(match verdict {
                    Verdict::Accept => nfq::Verdict::Accept,
                    Verdict::Refuse => nfq::Verdict::Drop,
                });
                queue.verdict(message).unwrap();
            }
        };
        Self { is_over, thread: Some(std::thread::spawn(read)) }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// Its socket would be inherited by what another test starts (`nfq` opens it without `SOCK_CLOEXEC`), which has the queue then as long as it runs.
fn open() -> Queue {
    let queue = Queue::open().unwrap();
    close_fds::set_fds_cloexec(3, &[]);
    queue
}

/// The kernel lets go of a queue a while after its reader has closed the socket, and refuses another one until then (`nfqnl_recv_config`).
fn bind(queue: &mut Queue) {
    let begun = Instant::now();
    while let Err(error) = queue.bind(QUEUE) {
        assert!(begun.elapsed() < patience(LET_GO), "the queue is not to be had: {error}");
        sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_queue_can_be_had_again_while_somebody_runs_who_was_started_meanwhile() {
    let lab = Lab::new().unwrap();
    let namespace = lab.namespace("node").unwrap();
    let first = Reader::start(&namespace, Verdict::Accept);
    let mut other = Command::new("sleep").arg("60").spawn().unwrap();
    drop(first);
    let again = std::panic::catch_unwind(|| Reader::start(&namespace, Verdict::Accept));
    other.kill().unwrap();
    other.wait().unwrap();
    again.unwrap_or_else(|cause| std::panic::resume_unwind(cause));
}
