//! On what it was measured.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use shunt_lab::load::cpus;

/// What changes how packets or namespaces fare.
const SYSCTLS: [&str; 4] = [
    "net/bridge/bridge-nf-call-iptables",
    "net/core/default_qdisc",
    "net/core/bpf_jit_enable",
    "kernel/sched_autogroup_enabled",
];

/// The machine and the versions, in every results file.
#[derive(Debug, Clone, Serialize, Deserialize)]
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
    pub(crate) version: String,
    /// The reference plugins that were compared with, and their version.
    pub(crate) reference: String,
    /// The sysctls that matter, as new namespaces have them.
    pub(crate) sysctls: BTreeMap<String, String>,
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
            version: env!("CARGO_PKG_VERSION").to_owned(),
            reference: reference(),
            sysctls: SYSCTLS
                .iter()
                .map(|name| ((*name).to_owned(), read(&format!("/proc/sys/{name}")).trim().to_owned()))
                .collect(),
        }
    }
}

impl Header {
    /// Whether the reference plugins that are here can write nftables' rules, as they can since 1.6.
    pub(crate) fn reference_has_nftables(&self) -> bool {
        let version = self.reference.split_whitespace().nth(1).unwrap_or_default();
        // An epoch in front, as Debian writes versions.
        let version = version.split_once(':').map_or(version, |(_, version)| version);
        let mut numbers =
            version.split(|c: char| !c.is_ascii_digit()).map_while(|part| part.parse::<u32>().ok());
        let (major, minor) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        (major, minor) >= (1, 6)
    }
}

/// The load average of the last minute.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0.0)
}

/// The package of the reference plugins; empty where they came another way.
fn reference() -> String {
    let said = Command::new("dpkg-query")
        .args(["-W", "-f", "${Package} ${Version}", "containernetworking-plugins"])
        .output();
    let text = said.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().next().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_plugins_know_nftables_since_1_6() {
        let knows = |reference: &str| {
            Header { reference: reference.to_owned(), ..Header::gather() }.reference_has_nftables()
        };
        let package = "containernetworking-plugins";
        assert!(!knows(""));
        assert!(!knows(&format!("{package} 1.1.1+ds1-3+b10")));
        assert!(knows(&format!("{package} 1.6.2-1")));
        assert!(knows(&format!("{package} 1:1.10.0")));
    }
}
