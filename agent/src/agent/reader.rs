//! Reads the table of translated connections beside the agent's thread: what grows with the table neither waits in the agent's queue nor
//! keeps the agent from its work. Each look is a thread that ends with it.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread;

use shunt_agent_api::Reply;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::unavailable::unavailable;
use crate::requests::query::flows;
use crate::requests::query::mappings::{self, HostPort};
use crate::requests::query::owners::Owners;
use crate::resources::connection::Tallies;

/// Lists of connections at a time: a client may read slowly.
const LISTS: usize = 4;

const BUSY: &str = "too many lists of connections are asked for at a time, try again";
const THREADLESS: &str = "a thread that reads the connections cannot be made, try again";

/// Readers' handle on the table.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    tallies: Arc<Tallies>,
    /// One tally at a time: who waits for it takes the same one.
    turn: Arc<Semaphore>,
    lists: Arc<Semaphore>,
}

impl Reader {
    pub(super) fn new(tallies: Arc<Tallies>) -> Self {
        let places = |most| Arc::new(Semaphore::const_new(most));
        Self { tallies, turn: places(1), lists: places(LISTS) }
    }

    /// Reports these host ports.
    pub(super) async fn mappings(&self, ports: Vec<HostPort>) -> Reply {
        let Ok(turn) = Arc::clone(&self.turn).acquire_owned().await else { return unavailable(BUSY) };
        let tallies = Arc::clone(&self.tallies);
        beside("tally", turn, move || mappings::reports(&tallies, ports)).await
    }

    /// Lists every connection, `most` in a page. The receiver gets what `made` makes of each page and of whether more is to come, on the
    /// reading thread.
    ///
    /// # Errors
    /// Why it is not begun: too many lists are being read.
    pub(crate) fn flows<T: Send + 'static>(
        &self,
        owners: Owners,
        most: usize,
        mut made: impl FnMut(Reply, bool) -> T + Send + 'static,
    ) -> Result<mpsc::Receiver<T>, &'static str> {
        let place = Arc::clone(&self.lists).try_acquire_owned().map_err(|_| BUSY)?;
        let (told, pages) = mpsc::channel(1);
        let tallies = Arc::clone(&self.tallies);
        let read = move || {
            let _place = place;
            flows::pages(&tallies.table, &owners, most, |page, more| {
                match told.blocking_send(made(page, more)) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(_) => ControlFlow::Break(()),
                }
            });
        };
        let thread = thread::Builder::new().name("flows".into()).spawn(read);
        thread.map(|_| pages).map_err(|_| THREADLESS)
    }

    /// The same in one answer.
    pub(super) async fn all_flows(&self, owners: Owners) -> Reply {
        let Ok(place) = Arc::clone(&self.lists).try_acquire_owned() else { return unavailable(BUSY) };
        let tallies = Arc::clone(&self.tallies);
        beside("flows", place, move || flows::all(&tallies.table, &owners)).await
    }
}

/// What a thread of its own reads, which holds its `place` until it has.
async fn beside(
    name: &str,
    place: OwnedSemaphorePermit,
    read: impl FnOnce() -> Reply + Send + 'static,
) -> Reply {
    let (told, answer) = oneshot::channel();
    let read = move || {
        let _place = place;
        // The asker may have gone.
        let _gone = told.send(read());
    };
    match thread::Builder::new().name(name.to_owned()).spawn(read) {
        Ok(_) => answer.await.unwrap_or_else(|_| unavailable(THREADLESS)),
        Err(_) => unavailable(THREADLESS),
    }
}
