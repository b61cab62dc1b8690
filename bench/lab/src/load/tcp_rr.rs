//! TCP_RR: one request and its response at a time on one connection.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::cpu::pin;
use super::sample::Latencies;
use super::{Bound, MESSAGE, PATIENCE, Placement, Sample, listen};
use crate::Path;

/// Measures the round trip of 64 bytes and back.
///
/// # Errors
/// When the path is broken.
pub fn tcp_rr(path: Path<'_>, at: Placement, bound: Bound) -> Result<Sample> {
    let (listener, address) = listen(path)?;
    let client = path.client.enter(|| TcpStream::connect_timeout(&address, PATIENCE))?.context("connect")?;
    let (server, _) = listener.accept().context("accept")?;
    for stream in [&client, &server] {
        stream.set_nodelay(true).context("set TCP_NODELAY")?;
        stream.set_read_timeout(Some(PATIENCE)).context("bound a socket's reads")?;
    }
    thread::scope(|scope| {
        let answering = scope.spawn(|| answer(server, at.server));
        let asking = scope.spawn(|| ask(client, at.client, bound));
        let sample = asking.join();
        match (sample, answering.join()) {
            (Ok(sample), Ok(answered)) => answered.and(sample),
            _ => bail!("a load generator's thread panicked"),
        }
    })
}

fn ask(mut stream: TcpStream, cpu: usize, bound: Bound) -> Result<Sample> {
    pin(cpu)?;
    let mut message = [7; MESSAGE];
    let mut latencies = Latencies::new()?;
    let begun = Instant::now();
    let mut done = 0;
    while bound.allows(done, begun) {
        let asked = Instant::now();
        stream
            .write_all(&message)
            .and_then(|()| stream.read_exact(&mut message))
            .context("request and response")?;
        latencies.add(asked.elapsed());
        done += 1;
    }
    Ok(latencies.sample(begun.elapsed()))
}

/// Answers until the client hangs up.
fn answer(mut stream: TcpStream, cpu: usize) -> Result<()> {
    pin(cpu)?;
    let mut message = [0; MESSAGE];
    while stream.read_exact(&mut message).is_ok() {
        if stream.write_all(&message).is_err() {
            break;
        }
    }
    Ok(())
}
