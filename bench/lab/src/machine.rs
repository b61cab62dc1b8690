//! What labs leave on the machine: nothing. Here it is looked for, and swept away after a process that was killed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::directory::{PREFIX, RUN, mounts_below, remove};
use crate::inventory::files_below;
use crate::patience::patience;

/// Where pins land that did not go to a lab's own BPF file system, as they should.
const DEFAULT_PINS: &str = "/sys/fs/bpf/shunt";

/// The kernel's switch for expedited grace periods, which agents set for moments.
const EXPEDITED: &str = "/sys/kernel/rcu_expedited";

/// How long agents that live may have it set by turns.
const MOMENTARY: Duration = Duration::from_secs(5);

/// The machine's links and an agent's usual pins at some moment, to be compared with a later one.
#[derive(Debug, Clone)]
pub struct Machine {
    expedited: bool,
    links: BTreeSet<String>,
    pins: BTreeSet<PathBuf>,
}

impl Machine {
    /// Looks at the calling process's own namespace.
    pub fn now() -> Self {
        let links = std::fs::read_to_string("/proc/net/dev").unwrap_or_default();
        let links = links.lines().skip(2).filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned()));
        let pins = files_below(Path::new(DEFAULT_PINS)).into_iter().collect();
        Self { expedited: is_expedited(), links: links.collect(), pins }
    }

    /// What `lab`, now dropped, has left behind, one line each: its directory, mounts, processes, links and pins
    /// that were not there before, and grace periods that stay short.
    pub fn leaks(&self, lab: &Path) -> Vec<String> {
        let now = Self::now();
        let mut found = Vec::new();
        if lab.exists() {
            found.push(format!("directory {}", lab.display()));
        }
        found.extend(mounts_below(lab).iter().map(|path| format!("mount {}", path.display())));
        found.extend(processes_of(lab).iter().map(|pid| format!("process {pid}")));
        found.extend(now.links.difference(&self.links).map(|name| format!("link {name}")));
        if !self.expedited && stays_expedited() {
            found.push(format!("{EXPEDITED} is set"));
        }
        found.extend(now.pins.difference(&self.pins).map(|pin| format!("pin {}", pin.display())));
        found
    }
}

/// Whether the switch stays set. It is the machine's: other labs' agents set it too, for single calls.
fn stays_expedited() -> bool {
    let begun = Instant::now();
    while is_expedited() {
        if begun.elapsed() > patience(MOMENTARY) {
            return true;
        }
        sleep(Duration::from_millis(5));
    }
    false
}

fn is_expedited() -> bool {
    std::fs::read_to_string(EXPEDITED).is_ok_and(|switch| switch.trim() != "0")
}

/// Removes the labs of processes that no longer live, and ends what they started.
pub(crate) fn sweep() {
    for entry in std::fs::read_dir(RUN).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
        if pid.is_none_or(|pid| Path::new("/proc").join(pid).exists()) {
            continue;
        }
        for process in processes_of(&entry.path()) {
            kill(process, Signal::SIGKILL).ok();
        }
        remove(&entry.path());
    }
}

/// Processes other than this one that have a path in the lab among their arguments, as every agent has its socket.
fn processes_of(lab: &Path) -> Vec<Pid> {
    let needle = format!("{}/", lab.display());
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| *pid != std::process::id().cast_signed())
        .filter(|pid| {
            let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&arguments).contains(&needle)
        })
        .map(Pid::from_raw)
        .collect()
}
