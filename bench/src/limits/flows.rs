//! TCP connections that carry as much as they can, and datagrams that are timed beside them.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use shunt_lab::{Conversation, Echo, Namespace, Protocol, Sandbox, uninterrupted};

/// How long a connection may stand still before it is broken.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where datagrams are answered.
const PORT: u16 = 7000;

/// Between two datagrams.
const PAUSE: Duration = Duration::from_millis(10);

const PIECE: usize = 64 * 1024;

/// What has arrived by when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flows {
    pub(super) at: Instant,
    pub(super) bytes: u64,
}

/// Who sends or gets.
#[derive(Clone, Copy)]
pub(super) struct End<'a> {
    pub(super) namespace: &'a Namespace,
    pub(super) address: Ipv4Addr,
}

impl<'a> End<'a> {
    /// A container.
    pub(super) fn of(sandbox: &'a Sandbox) -> Result<Self> {
        Ok(Self { namespace: sandbox.namespace(), address: sandbox.attachment().ipv4()? })
    }
}

/// Connections under load, until it is dropped.
pub(super) struct Load {
    begun: Instant,
    arrived: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// Connects, and sends on all connections at once.
    pub(super) fn start(from: End<'_>, to: End<'_>, flows: usize) -> Result<Self> {
        let listener = to.namespace.enter(|| TcpListener::bind((to.address, 0)))??;
        let there = listener.local_addr()?;
        let mut pairs = Vec::new();
        for _ in 0..flows {
            let client = from.namespace.enter(|| TcpStream::connect_timeout(&there, PATIENCE))??;
            let (server, _) = listener.accept()?;
            client.set_write_timeout(Some(PATIENCE))?;
            server.set_read_timeout(Some(PATIENCE))?;
            pairs.push((client, server));
        }
        let (arrived, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let mut threads = Vec::new();
        for (client, server) in pairs {
            let (sum, stop) = (Arc::clone(&arrived), Arc::clone(&over));
            threads.push(thread::spawn(move || receive(server, &sum, &stop)));
            let stop = Arc::clone(&over);
            threads.push(thread::spawn(move || send(client, &stop)));
        }
        Ok(Self { begun: Instant::now(), arrived, over, threads })
    }

    pub(super) fn now(&self) -> Flows {
        Flows { at: Instant::now(), bytes: self.arrived.load(Ordering::Relaxed) }
    }

    /// Waits until `time` after the beginning.
    pub(super) fn after(&self, time: Duration) -> Flows {
        thread::sleep(time.saturating_sub(self.begun.elapsed()));
        self.now()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so.
            drop(thread.join());
        }
    }
}

fn send(mut client: TcpStream, over: &AtomicBool) {
    let piece = vec![7; PIECE];
    while !over.load(Ordering::Relaxed) && client.write_all(&piece).is_ok() {}
    // What still waits is of no interest to anybody.
    drop(client.shutdown(std::net::Shutdown::Both));
}

fn receive(mut server: TcpStream, arrived: &AtomicU64, over: &AtomicBool) {
    let mut piece = vec![0; PIECE];
    while !over.load(Ordering::Relaxed) {
        match uninterrupted(|| server.read(&mut piece)) {
            Ok(0) | Err(_) => return,
            Ok(bytes) => _ = arrived.fetch_add(bytes as u64, Ordering::Relaxed),
        }
    }
}

/// Round trips of small datagrams, in milliseconds.
pub(super) fn round_trips(from: End<'_>, to: End<'_>, time: Duration) -> Result<Vec<f64>> {
    let echo = Echo::listen(to.namespace, to.address.into(), PORT)?;
    let begun = Instant::now();
    let mut times = Vec::new();
    let mut talk = Conversation::open(from.namespace, Protocol::Udp, echo.address())?;
    while begun.elapsed() < time {
        let sent = Instant::now();
        // A full queue drops datagrams as well: what counts is how long those wait that arrive.
        match talk.say(56).context("a datagram that nobody answers") {
            Ok(()) => times.push(sent.elapsed().as_secs_f64() * 1e3),
            Err(_) => talk = Conversation::open(from.namespace, Protocol::Udp, echo.address())?,
        }
        thread::sleep(PAUSE);
    }
    Ok(times)
}
