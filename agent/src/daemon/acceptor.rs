//! The thread that takes clients in, and does nothing else: it may have the client's processor for a moment, and sees to it that those
//! who work for the client have another.

use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;
use std::time::Duration;

use nix::unistd::Pid;
use shunt_agent_api::processor_of;
use tokio::sync::mpsc;

use super::placement::{Guest, Placement};
use super::stream::Stream;

/// Clients that may wait for the runtime. Others wait in the kernel's queue.
const QUEUE: usize = 16;

/// How long a failure is left alone, most likely a lack of descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// Clients, as they come.
#[derive(Debug)]
pub(super) struct Acceptor {
    clients: mpsc::Receiver<io::Result<(UnixStream, Guest)>>,
}

impl Acceptor {
    /// Begins to accept clients, until this is dropped and the socket is shut down. The `threads` keep off a client's processor.
    ///
    /// # Errors
    /// The thread cannot be made.
    pub(super) fn start(socket: UnixListener, threads: [Pid; 2]) -> io::Result<Self> {
        let (told, clients) = mpsc::channel(QUEUE);
        let accept = move || {
            let placement = Placement::new(threads);
            loop {
                let accepted = socket.accept();
                let client =
                    accepted.map(|(stream, address)| (stream, placement.receive(processor_of(&address))));
                let has_failed = client.is_err();
                if told.blocking_send(client).is_err() {
                    return;
                }
                if has_failed {
                    thread::sleep(PAUSE);
                }
            }
        };
        thread::Builder::new().name("acceptor".into()).spawn(accept)?;
        Ok(Self { clients })
    }

    /// Waits for a client; none when there will be no more. Cancelling it loses nothing.
    ///
    /// # Errors
    /// The kernel's; the next client may fare better.
    pub(super) async fn next(&mut self) -> Option<io::Result<(Stream, Guest)>> {
        let client = self.clients.recv().await?;
        Some(client.and_then(|(stream, guest)| Ok((Stream::new(stream)?, guest))))
    }
}
