//! TCP_STREAM: as many bytes as go, by iperf3. What it says is mostly how well segments are put together (GSO, GRO), and
//! hardly how long a path is.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::{PATIENCE, Placement, Sample};
use crate::Path;

/// iperf3's port where the path names none.
const PORT: u16 = 5201;

/// Measures bytes a second over `flows` connections at once, for `time`, or a second, the least that iperf3
/// can be told.
///
/// # Errors
/// When iperf3 is missing or fails; with what it says.
pub fn tcp_stream(path: Path<'_>, at: Placement, flows: u32, time: Duration) -> Result<Sample> {
    stream(path, at, time, &["--parallel", &flows.to_string()])
}

/// The same over one connection on which the server sends.
///
/// # Errors
/// As [`tcp_stream`].
pub fn tcp_stream_back(path: Path<'_>, at: Placement, time: Duration) -> Result<Sample> {
    stream(path, at, time, &["--reverse"])
}

fn stream(path: Path<'_>, at: Placement, time: Duration, how: &[&str]) -> Result<Sample> {
    let own = SocketAddr::new(path.address, if path.port == 0 { PORT } else { path.port });
    let address = path.through.unwrap_or(own);
    let server = path.server.enter(|| Server::start(own, at.server))??;
    let client = path.client.enter(|| {
        Command::new("iperf3")
            .args(["--json", "--client", &address.ip().to_string(), "--port", &address.port().to_string()])
            .args(how)
            .args(["--affinity", &at.client.to_string()])
            .args(["--time", &time.as_secs().max(1).to_string()])
            .args(["--connect-timeout", &PATIENCE.as_millis().to_string()])
            .output()
    })?;
    let output = client.context("start iperf3")?;
    drop(server);
    let report: Value = serde_json::from_slice(&output.stdout).context("what iperf3 printed is no JSON")?;
    if let Some(error) = report["error"].as_str() {
        bail!("iperf3: {error}");
    }
    let received = &report["end"]["sum_received"];
    let (bytes, seconds) = (received["bytes"].as_u64(), received["seconds"].as_f64());
    let (bytes, seconds) = bytes.zip(seconds).context("iperf3 does not say what was received")?;
    Ok(Sample { operations: bytes, lost: 0, seconds, p50_us: None, p99_us: None })
}

/// An iperf3 that serves one client.
struct Server(Child);

impl Server {
    /// Starts one in the calling thread's namespace, and waits until it listens.
    fn start(address: SocketAddr, cpu: usize) -> Result<Self> {
        let child = Command::new("iperf3")
            .args(["--server", "--one-off", "--affinity", &cpu.to_string()])
            .args(["--bind", &address.ip().to_string(), "--port", &address.port().to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("start iperf3 as a server")?;
        let mut server = Self(child);
        server.wait_until_it_listens(address)?;
        Ok(server)
    }

    fn wait_until_it_listens(&mut self, address: SocketAddr) -> Result<()> {
        let begun = Instant::now();
        while !listens(address)? {
            if let Some(status) = self.0.try_wait().context("wait for iperf3")? {
                bail!("iperf3 ended at its start: {status}");
            }
            if begun.elapsed() > PATIENCE {
                bail!("iperf3 does not listen");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

/// Whether somebody listens on iperf3's port: to connect would be to be the one client that it serves.
fn listens(address: SocketAddr) -> Result<bool> {
    let table = if address.is_ipv4() { "/proc/thread-self/net/tcp" } else { "/proc/thread-self/net/tcp6" };
    let sockets = std::fs::read_to_string(table).context("read the namespace's sockets")?;
    // The port in state TCP_LISTEN (linux/tcp_states.h), as the kernel prints it.
    let port = format!(":{:04X} ", address.port());
    Ok(sockets.lines().any(|line| line.contains(&port) && line.contains(" 0A ")))
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended by itself unless something failed.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
