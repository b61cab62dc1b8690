//! Load generators. Both ends run here, on threads pinned to the CPUs that the caller names: where they run is part of
//! the result, and unpinned latency on a small machine mostly measures the scheduler.

mod cpu;
mod sample;
mod tcp_crr;
mod tcp_rr;
mod tcp_stream;
mod udp_burst;
mod udp_rr;

use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::Path;

pub use cpu::{Placement, cpus, cpus_of, pin};
pub use sample::Sample;
pub use tcp_crr::tcp_crr;
pub use tcp_rr::tcp_rr;
pub use tcp_stream::{tcp_stream, tcp_stream_back};
pub use udp_burst::udp_burst;
pub use udp_rr::udp_rr;

/// Bytes of a request and of its response.
const MESSAGE: usize = 64;

/// How long one operation may take before the path counts as broken.
const PATIENCE: Duration = Duration::from_secs(5);

/// A listener at the server's end, and where the client finds it.
fn listen(path: Path<'_>) -> Result<(TcpListener, SocketAddr)> {
    let listener = path.server.enter(|| TcpListener::bind((path.address, path.port)))?.context("listen")?;
    let own = listener.local_addr().context("read a listener's address")?;
    Ok((listener, path.through.unwrap_or(own)))
}

/// When a measurement ends: at the first of the two.
#[derive(Debug, Clone, Copy)]
pub struct Bound {
    /// Operations.
    pub operations: u64,
    /// Time from the first operation on.
    pub time: Duration,
}

impl Bound {
    /// Whether there is more to do after `done` operations since `begun`.
    fn allows(self, done: u64, begun: Instant) -> bool {
        done < self.operations && begun.elapsed() < self.time
    }
}
