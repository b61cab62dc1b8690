//! What is to be published, as the agent's thread has it.

use std::time::Duration;

use shunt_agent_api::{CapacityReport, Event, EventKind, Reply, Request};
use tokio::sync::broadcast::{self, error::RecvError};

use crate::agent::Core;

/// Changes that come together are published together. Schedulers are to hear of a change within a second.
const TOGETHER: Duration = Duration::from_millis(200);

/// The books, to be asked and to be waited for.
#[derive(Debug)]
pub(super) struct Books {
    core: Core,
    /// None where too many others listen already: then it is looked again and again.
    events: Option<broadcast::Receiver<Event>>,
}

impl Books {
    pub(super) fn new(core: Core) -> Self {
        let events = core.subscribe();
        Self { core, events }
    }

    /// What can be handed out now; none when the agent is ending.
    pub(super) async fn read(&self) -> Option<CapacityReport> {
        match self.core.ask(Request::Capacity).await {
            Reply::Capacity(capacity) => Some(capacity),
            _ => None,
        }
    }

    /// Waits until it may have changed. May be given up while it waits.
    pub(super) async fn changed(&mut self) {
        let Some(events) = &mut self.events else { return tokio::time::sleep(TOGETHER * 4).await };
        loop {
            match events.recv().await {
                Ok(event) if event.event != EventKind::Capacity => {}
                Ok(_) | Err(RecvError::Lagged(_)) => break,
                Err(RecvError::Closed) => return std::future::pending().await,
            }
        }
        tokio::time::sleep(TOGETHER).await;
    }

    /// Has the agent's status say what is wrong; none if nothing is.
    pub(super) async fn remark(&self, remark: Option<String>) {
        self.core.remark("publisher", remark.map(|remark| format!("kubernetes: {remark}"))).await;
    }
}
