//! Small UDP packets on one core: what a packet costs when nobody has to be woken.
//!
//! One thread holds both sockets. It sends a burst, which the kernel carries all the way into the receiver's queue on
//! the same CPU, and then reads the burst out. So the rate is that of a core's whole work, sending and receiving
//! included, without a scheduler in it.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::cpu::pin;
use super::{Bound, PATIENCE, Sample};
use crate::{Path, uninterrupted};

/// Payload: the smallest Ethernet frame, 60 bytes, has room for 18.
const PAYLOAD: usize = 18;

/// Datagrams sent before they are read; well within the smallest receive buffer.
const BURST: u64 = 32;

/// How long a datagram may be on its way before it counts as lost.
const LOST: Duration = Duration::from_millis(200);

/// Measures datagrams per second on `cpu`.
///
/// # Errors
/// When nothing arrives.
pub fn udp_burst(path: Path<'_>, cpu: usize, bound: Bound) -> Result<Sample> {
    let (client, server) = sockets(path)?;
    server.set_read_timeout(Some(LOST)).context("bound a socket's reads")?;
    std::thread::scope(|scope| scope.spawn(|| burst(&client, &server, cpu, bound)).join())
        .unwrap_or_else(|_| bail!("a load generator's thread panicked"))
}

fn burst(client: &UdpSocket, server: &UdpSocket, cpu: usize, bound: Bound) -> Result<Sample> {
    pin(cpu)?;
    let mut datagram = [7; PAYLOAD];
    let (mut sent, mut received) = (0, 0);
    let begun = Instant::now();
    while bound.allows(sent, begun) {
        for _ in 0..BURST {
            client.send(&datagram).context("send a datagram")?;
        }
        sent += BURST;
        while received < sent && uninterrupted(|| server.recv(&mut datagram)).is_ok() {
            received += 1;
        }
        if received == 0 {
            bail!("no datagram arrived");
        }
        if received < sent {
            // What was lost stays lost; the next burst counts anew.
            return Ok(sample(received, sent - received, begun.elapsed()));
        }
    }
    Ok(sample(received, 0, begun.elapsed()))
}

fn sample(operations: u64, lost: u64, elapsed: Duration) -> Sample {
    Sample { operations, lost, seconds: elapsed.as_secs_f64(), p50_us: None, p99_us: None }
}

/// A client's and a server's socket, connected to each other.
pub(super) fn sockets(path: Path<'_>) -> Result<(UdpSocket, UdpSocket)> {
    let server = path.server.enter(|| UdpSocket::bind((path.address, 0)))?.context("bind the server")?;
    let there = server.local_addr().context("read a socket's address")?;
    let client = path
        .client
        .enter(|| -> std::io::Result<UdpSocket> {
            let any = if path.address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            let socket = UdpSocket::bind(any)?;
            socket.connect(there)?;
            Ok(socket)
        })?
        .context("connect the client")?;
    server.connect(client.local_addr().context("read a socket's address")?).context("connect the server")?;
    for socket in [&client, &server] {
        socket.set_read_timeout(Some(PATIENCE)).context("bound a socket's reads")?;
    }
    Ok((client, server))
}
