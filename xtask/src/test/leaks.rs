//! What was on the machine before the tests, and what more there is after them.
//!
//! Another test run on the same machine is left alone: its lab's directory carries the id of a living process that is
//! not ours, and neither programs nor the switch for expedited grace periods are judged while there is such a lab.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{processes, programs};

/// Directories of which every file counts.
const WATCHED: [&str; 5] = ["/run/netns", "/run/shunt", "/var/lib/shunt", "/var/lib/cni", "/sys/fs/bpf"];

/// Directories of which only names with our prefix count.
const SHARED: [&str; 2] = ["/run", "/tmp"];
const PREFIX: &str = "shunt-";
const LAB: &str = "/run/shunt-lab-";

/// Mounted by the first user of each and there to stay, on any machine.
const PERMANENT_MOUNTS: [&str; 2] = ["/sys/fs/bpf", "/run/netns"];

/// Grace periods of the kernel are expedited while this is not 0.
const EXPEDITED: &str = "/sys/kernel/rcu_expedited";

/// The kernel removes namespaces, links and programs some time after their last user is gone.
const GRACE: Duration = Duration::from_secs(5);

pub(super) struct Snapshot {
    lines: BTreeSet<String>,
}

impl Snapshot {
    pub(super) fn take() -> Self {
        let mut lines = BTreeSet::new();
        let others = labs_of_others();
        lines.extend(processes::descendants().into_iter().map(|process| process.to_string()));
        lines.extend(links());
        lines.extend(mounts(&others));
        lines.extend(files(&others));
        if others.is_empty() {
            lines.extend(programs::loaded());
            lines.extend(expedited());
        }
        Self { lines }
    }

    /// What is there now and was not then; processes among it are ended.
    pub(super) fn leaks(&self) -> Vec<String> {
        let deadline = Instant::now() + GRACE;
        loop {
            processes::reap_orphans(None);
            let now = Self::take();
            let left: Vec<_> = now.lines.difference(&self.lines).cloned().collect();
            if left.is_empty() || Instant::now() > deadline {
                processes::end_descendants();
                return left;
            }
            sleep(Duration::from_millis(100));
        }
    }
}

fn links() -> Vec<String> {
    entries(Path::new("/sys/class/net")).iter().map(|path| format!("link {}", name(path))).collect()
}

/// The switch for expedited grace periods, which an agent sets for single calls.
fn expedited() -> Option<String> {
    let switch = fs::read_to_string(EXPEDITED).ok()?;
    (switch.trim() != "0").then(|| format!("{EXPEDITED} is {}", switch.trim()))
}

fn mounts(others: &[PathBuf]) -> Vec<String> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let points = table.lines().filter_map(|line| line.split(' ').nth(4));
    let ours = points.filter(|point| !PERMANENT_MOUNTS.contains(point) && !belongs(Path::new(point), others));
    ours.map(|point| format!("mount {point}")).collect()
}

fn files(others: &[PathBuf]) -> Vec<String> {
    let mut found = Vec::new();
    for directory in WATCHED {
        below(Path::new(directory), &mut found);
    }
    for directory in SHARED {
        for path in entries(Path::new(directory)) {
            if name(&path).starts_with(PREFIX) {
                found.push(path);
            }
        }
    }
    found.retain(|path| !belongs(path, others));
    found.iter().map(|path| format!("file {}", path.display())).collect()
}

/// The directories of labs whose process lives and was not started by us.
fn labs_of_others() -> Vec<PathBuf> {
    let ours: Vec<_> = processes::descendants().iter().map(|process| process.id).collect();
    let is_others = |path: &PathBuf| {
        let id =
            path.to_str().and_then(|path| path.strip_prefix(LAB)?.split('-').next()?.parse::<i32>().ok());
        id.is_some_and(|id| !ours.contains(&id) && Path::new("/proc").join(id.to_string()).exists())
    };
    entries(Path::new("/run")).into_iter().filter(is_others).collect()
}

fn belongs(path: &Path, others: &[PathBuf]) -> bool {
    others.iter().any(|lab| path.starts_with(lab))
}

fn below(directory: &Path, found: &mut Vec<PathBuf>) {
    for path in entries(directory) {
        if path.is_dir() && !path.is_symlink() {
            below(&path, found);
        }
        found.push(path);
    }
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let listing = fs::read_dir(directory).into_iter().flatten();
    listing.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_directory_with_our_prefix_is_a_leak_until_it_is_gone() {
        let before = Snapshot::take();
        let directory = tempfile::Builder::new().prefix("shunt-leak-").tempdir_in("/tmp").unwrap();
        let line = format!("file {}", directory.path().display());
        assert!(Snapshot::take().lines.difference(&before.lines).any(|leak| *leak == line));
        drop(directory);
        assert!(!Snapshot::take().lines.contains(&line));
    }

    #[test]
    fn a_lab_of_a_living_process_is_not_ours_to_judge() {
        let lab = PathBuf::from("/run/shunt-lab-1-0");
        assert!(belongs(&lab.join("bpf"), std::slice::from_ref(&lab)));
        assert!(!belongs(Path::new("/run/shunt-lab-10-0"), &[lab]));
    }
}
