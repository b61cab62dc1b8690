//! UDP_RR: one datagram and its answer at a time.

use std::net::UdpSocket;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::cpu::pin;
use super::sample::Latencies;
use super::udp_burst::sockets;
use super::{Bound, MESSAGE, Placement, Sample};
use crate::{Path, uninterrupted};

/// Measures the round trip of 64 bytes and back.
///
/// # Errors
/// When a datagram is lost.
pub fn udp_rr(path: Path<'_>, at: Placement, bound: Bound) -> Result<Sample> {
    let (client, server) = sockets(path)?;
    thread::scope(|scope| {
        let answering = scope.spawn(|| answer(&server, at.server));
        let asking = scope.spawn(|| ask(&client, at.client, bound));
        match (asking.join(), answering.join()) {
            (Ok(sample), Ok(answered)) => sample.and_then(|sample| answered.map(|()| sample)),
            _ => bail!("a load generator's thread panicked"),
        }
    })
}

fn ask(socket: &UdpSocket, cpu: usize, bound: Bound) -> Result<Sample> {
    pin(cpu)?;
    let mut message = [7; MESSAGE];
    let mut latencies = Latencies::new()?;
    let begun = Instant::now();
    let mut done = 0;
    while bound.allows(done, begun) {
        let asked = Instant::now();
        socket
            .send(&message)
            .and_then(|_| uninterrupted(|| socket.recv(&mut message)))
            .context("datagram and answer")?;
        latencies.add(asked.elapsed());
        done += 1;
    }
    let elapsed = begun.elapsed();
    // An empty datagram ends the server.
    socket.send(&[]).context("end the server")?;
    Ok(latencies.sample(elapsed))
}

fn answer(socket: &UdpSocket, cpu: usize) -> Result<()> {
    pin(cpu)?;
    let mut message = [0; MESSAGE];
    loop {
        match uninterrupted(|| socket.recv(&mut message)).context("receive a datagram")? {
            0 => return Ok(()),
            length => drop(socket.send(&message[..length]).context("answer a datagram")?),
        }
    }
}
