//! On what it was measured.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use shunt_lab::load::cpus;

/// The machine and the versions, in every results file.
#[derive(Debug, Serialize)]
pub(crate) struct Header {
    /// The program's arguments.
    pub(crate) command: String,
    /// Seconds since the epoch.
    pub(crate) time: u64,
    /// Kernel release.
    pub(crate) kernel: String,
    /// The processor's name.
    pub(crate) processor: String,
    /// CPUs that may be used.
    pub(crate) cpus: usize,
    /// MemTotal, in kB.
    pub(crate) memory_kb: u64,
    /// Other work on the machine when it began: the load of the last minute.
    pub(crate) load: f64,
    /// Our version.
    pub(crate) version: &'static str,
}

impl Header {
    /// Gathers it; what cannot be read is empty.
    pub(crate) fn gather() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name));
            line.and_then(|line| line.split_once(':'))
                .map(|(_, value)| value.trim().to_owned())
                .unwrap_or_default()
        };
        let memory = field(&read("/proc/meminfo"), "MemTotal");
        Self {
            command: std::env::args().collect::<Vec<_>>().join(" "),
            time: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            processor: field(&read("/proc/cpuinfo"), "model name"),
            cpus: cpus().map_or(0, |cpus| cpus.len()),
            memory_kb: memory.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0),
            load: load(),
            version: env!("CARGO_PKG_VERSION"),
        }
    }
}

/// The load average of the last minute.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0.0)
}
