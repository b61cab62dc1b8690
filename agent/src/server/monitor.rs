//! Changes of links of the agent's network namespace, as the kernel tells them to everybody.

use std::{io, thread};

use shunt_netlink::{LinkEvent, LinkMonitor, NetlinkError};
use tokio::sync::mpsc;

use crate::datapath::attach::clsact;

/// Hears of link changes of the network namespace that it was opened in.
///
/// A thread of its own listens, and sleeps for a moment from the first change on: each ADD makes half a dozen, and the kernel would
/// stop the plugin at each of them to run whoever waits for it, on the plugin's own processor.
#[derive(Debug)]
pub(super) struct Monitor {
    changes: mpsc::Receiver<io::Result<Vec<LinkEvent>>>,
}

impl Monitor {
    /// Subscribes.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn open() -> io::Result<Self> {
        let mut monitor = LinkMonitor::open(clsact::is_ours).map_err(|error| match error {
            NetlinkError::Socket(error) => error,
            other => io::Error::other(other),
        })?;
        let (told, changes) = mpsc::channel(1);
        let listen = move || loop {
            let heard = monitor.gather();
            let is_over = heard.is_err();
            if told.blocking_send(heard).is_err() || is_over {
                return;
            }
        };
        thread::Builder::new().name("monitor".into()).spawn(listen)?;
        Ok(Self { changes })
    }

    /// Waits for the next changes. Cancelling it loses nothing.
    ///
    /// # Errors
    /// The kernel's, other than that it dropped messages.
    pub(super) async fn next(&mut self) -> io::Result<Vec<LinkEvent>> {
        self.changes.recv().await.unwrap_or_else(|| Err(io::ErrorKind::BrokenPipe.into()))
    }
}
