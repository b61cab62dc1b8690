//! Asks connection tracking, and has it forget, beside the agent's thread: it may have millions of connections. One thread does one order after the other;
//! each is bounded.

mod claim;
mod forget;
mod look;

use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

pub(crate) use self::forget::{Forget, Led};

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Order {
    /// Claim datagrams that were led to one of these ends, in the map with this pin.
    Claim(u64, HashSet<SocketAddr>, PathBuf),
    /// Forget connections; there is no answer.
    Forget(Forget),
    /// Look whether the kernel has led a connection to one of these addresses.
    Look(u64, HashSet<IpAddr>),
}

/// What has come of an order, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Whether there is such a connection, or that is not known.
    Carried(u64, bool),
    /// They are claimed, as far as that could be.
    Claimed(u64),
}

/// The thread, once there is something to be done.
#[derive(Debug, Default)]
pub(crate) struct Tracker(Option<(Sender<Order>, Receiver<Answer>)>);

impl Tracker {
    /// Has the thread do it, in the network namespace of the calling one. Returns false where there is no thread to be had.
    pub(crate) fn order(&mut self, order: Order) -> bool {
        let done = self.sender().map(|sender| sender.send(order).is_ok());
        let is_ordered = done.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot start a thread that asks connection tracking");
            false
        });
        if !is_ordered {
            // One that has failed is started anew.
            self.0 = None;
        }
        is_ordered
    }

    /// What has been answered since this was asked last.
    pub(crate) fn answers(&self) -> Vec<Answer> {
        self.0.iter().flat_map(|(_, answers)| answers.try_iter()).collect()
    }

    fn sender(&mut self) -> io::Result<&Sender<Order>> {
        let both = match self.0.take() {
            Some(both) => both,
            None => {
                let ((sender, orders), (answer, answers)) = (channel(), channel());
                thread::Builder::new().name("tracked".into()).spawn(move || work(&orders, &answer))?;
                (sender, answers)
            }
        };
        Ok(&self.0.insert(both).0)
    }
}

fn work(orders: &Receiver<Order>, answer: &Sender<Answer>) {
    while let Ok(order) = orders.recv() {
        match order {
            Order::Claim(number, ends, pin) => {
                claim::claim_all(&ends, &pin);
                let _ = answer.send(Answer::Claimed(number));
            }
            Order::Forget(forget) => forget.work(),
            // The agent may be ending.
            Order::Look(number, places) => {
                let _ = answer.send(Answer::Carried(number, look::is_any_carried(&places)));
            }
        }
    }
}
