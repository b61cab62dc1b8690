//! The kernel's own list of BPF programs and links. Maps go with the programs that use them, or are pinned.

use std::process::Command;

use serde_json::Value;

use crate::process;

/// Loaded by init systems and container runtimes for their own cgroups, at any time.
const NOT_OURS: [&str; 2] = ["cgroup_device", "lsm"];

/// One line per program and link; none where bpftool cannot run.
pub(super) fn loaded() -> Vec<String> {
    let mut lines = list("prog");
    lines.extend(list("link"));
    lines
}

fn list(kind: &str) -> Vec<String> {
    let listing = process::output(Command::new("bpftool").args(["--json", kind, "show"])).unwrap_or_default();
    let listing: Vec<Value> = serde_json::from_str(&listing).unwrap_or_default();
    let ours = listing.iter().filter(|entry| !NOT_OURS.iter().any(|foreign| entry["type"] == *foreign));
    ours.map(|entry| describe(kind, entry)).collect()
}

fn describe(kind: &str, entry: &Value) -> String {
    let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    format!("bpf {kind} {} {} {}", entry["id"], text("type"), text("name"))
}
