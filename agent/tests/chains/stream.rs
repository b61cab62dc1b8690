//! One TCP connection that carries as much as it can.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use shunt_lab::{Sandbox, uninterrupted};

/// Nothing takes longer than this to arrive, or the path is broken.
const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes written and read at once. Small: what a write has put into the socket's buffer is not yet carried.
const PIECE: usize = 8 * 1024;

/// How much arrived by when: from the first byte on, one entry for each read.
pub(crate) struct Stream {
    arrivals: Vec<(Duration, usize)>,
}

impl Stream {
    /// Sends from one container to the other for `time`.
    pub(crate) fn run(from: &Sandbox, to: &Sandbox, time: Duration) -> Self {
        let address = to.attachment().ipv4().unwrap();
        let listener = to.namespace().enter(|| TcpListener::bind((address, 0))).unwrap().unwrap();
        let there = listener.local_addr().unwrap();
        let client =
            from.namespace().enter(|| TcpStream::connect_timeout(&there, PATIENCE)).unwrap().unwrap();
        let (server, _) = listener.accept().unwrap();
        client.set_write_timeout(Some(PATIENCE)).unwrap();
        server.set_read_timeout(Some(PATIENCE)).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| send(client, time));
            Self { arrivals: receive(server, time) }
        })
    }

    /// Bits a second, leaving out what came before `after`: a burst is no rate.
    pub(crate) fn rate(&self, after: Duration) -> f64 {
        let counted: Vec<_> = self.arrivals.iter().filter(|(at, _)| *at >= after).collect();
        let bytes: usize = counted.iter().skip(1).map(|(_, bytes)| bytes).sum();
        let [first, last] = [counted.first(), counted.last()].map(|arrival| arrival.unwrap().0);
        bytes as f64 * 8.0 / (last - first).as_secs_f64()
    }

    /// When the first `bytes` had arrived.
    pub(crate) fn time_of(&self, bytes: usize) -> Duration {
        let mut sum = 0;
        let arrival = self.arrivals.iter().find(|(_, piece)| {
            sum += piece;
            sum >= bytes
        });
        arrival.expect("as many bytes have arrived").0
    }
}

fn send(mut client: TcpStream, time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time && client.write_all(&[7; PIECE]).is_ok() {}
}

fn receive(mut server: TcpStream, time: Duration) -> Vec<(Duration, usize)> {
    let mut arrivals = Vec::new();
    let mut piece = [0; PIECE];
    let begun = Instant::now();
    while begun.elapsed() < time {
        let bytes = uninterrupted(|| server.read(&mut piece)).unwrap();
        assert!(piece[..bytes].iter().all(|byte| *byte == 7), "what arrives is what was sent");
        arrivals.push((begun.elapsed(), bytes));
    }
    arrivals
}
