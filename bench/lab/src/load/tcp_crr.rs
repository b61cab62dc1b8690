//! TCP_CRR: connect, request, response, close. What a web server without keep-alive sees, and what conntrack and NAT
//! rules cost most.
//!
//! The server closes first, so that TIME_WAIT stays with its one port and the client's ephemeral ports are free again
//! at once: otherwise a run of some seconds measures the search for a free port.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::time::TimeVal;

use super::cpu::pin;
use super::sample::Latencies;
use super::{Bound, MESSAGE, PATIENCE, Placement, Sample, listen};
use crate::{Path, uninterrupted};

/// The request's first byte that ends the server.
const FAREWELL: u8 = 0;

/// Measures whole connections, from the SYN until the response and the server's FIN have been read.
///
/// # Errors
/// When the path is broken.
pub fn tcp_crr(path: Path<'_>, at: Placement, bound: Bound) -> Result<Sample> {
    // A lost SYN is to fail within seconds, not minutes.
    path.client.sysctl("net/ipv4/tcp_syn_retries", "2")?;
    let (listener, address) = listen(path)?;
    let patience = TimeVal::new(PATIENCE.as_secs().cast_signed(), 0);
    setsockopt(&listener, sockopt::ReceiveTimeout, &patience).context("bound accept")?;
    thread::scope(|scope| {
        let answering = scope.spawn(|| answer(&listener, at.server));
        let asking = scope.spawn(|| {
            path.client.join_thread()?;
            pin(at.client)?;
            ask(address, bound)
        });
        match (asking.join(), answering.join()) {
            (Ok(sample), Ok(answered)) => sample.and_then(|sample| answered.map(|()| sample)),
            _ => bail!("a load generator's thread panicked"),
        }
    })
}

fn ask(address: SocketAddr, bound: Bound) -> Result<Sample> {
    let mut latencies = Latencies::new()?;
    let begun = Instant::now();
    let mut done = 0;
    while bound.allows(done, begun) {
        latencies.add(exchange(address, 7).context("connect, request, response")?);
        done += 1;
    }
    let elapsed = begun.elapsed();
    exchange(address, FAREWELL).context("end the server")?;
    Ok(latencies.sample(elapsed))
}

fn exchange(address: SocketAddr, first: u8) -> std::io::Result<Duration> {
    let begun = Instant::now();
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut message = [first; MESSAGE];
    stream.write_all(&message)?;
    stream.read_exact(&mut message)?;
    if uninterrupted(|| stream.read(&mut message))? != 0 {
        return Err(ErrorKind::InvalidData.into());
    }
    Ok(begun.elapsed())
}

fn answer(listener: &TcpListener, cpu: usize) -> Result<()> {
    pin(cpu)?;
    let mut message = [0; MESSAGE];
    loop {
        let (mut stream, _) = listener.accept().context("accept")?;
        stream
            .read_exact(&mut message)
            .and_then(|()| stream.write_all(&message))
            .context("answer a request")?;
        if message[0] == FAREWELL {
            return Ok(());
        }
    }
}
