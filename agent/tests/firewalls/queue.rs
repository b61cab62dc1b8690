//! A reader of a queue of packets (NFQUEUE), which gives all of them the same verdict.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use nfq::Queue;
use shunt_lab::Namespace;

/// The queue's number.
const QUEUE: u16 = 7;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Verdict {
    Accept,
    Refuse,
}

/// Ends with its value.
pub(crate) struct Reader {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    pub(crate) fn start(namespace: &Namespace, verdict: Verdict) -> Self {
        let mut queue = namespace.enter(|| Queue::open().unwrap()).unwrap();
        queue.bind(QUEUE).unwrap();
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
