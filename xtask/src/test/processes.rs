//! The processes that the tests started, orphans included.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;

use anyhow::{Context, Result};
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpid};

#[derive(Clone, Debug)]
pub(super) struct Process {
    pub(super) id: i32,
    parent: i32,
    name: String,
    zombie: bool,
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} ({})", self.id, self.name)
    }
}

/// Makes us the parent of whatever loses its own, so that a daemon cannot hide from [`descendants`].
pub(super) fn adopt_orphans() -> Result<()> {
    prctl::set_child_subreaper(true).context("cannot become the parent of orphans")
}

/// Every living process below us.
pub(super) fn descendants() -> Vec<Process> {
    let ids = fs::read_dir("/proc").into_iter().flatten();
    let ids = ids.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let all: BTreeMap<i32, Process> = ids.filter_map(|id| Some((id, read(id)?))).collect();
    all.values().filter(|process| !process.zombie && is_below_us(process, &all)).cloned().collect()
}

/// Ends them, by their ids.
pub(super) fn end_descendants() {
    for process in descendants() {
        // It may have ended by itself in the meantime.
        kill(Pid::from_raw(process.id), Signal::SIGKILL).ok();
    }
}

fn is_below_us(process: &Process, all: &BTreeMap<i32, Process>) -> bool {
    let us = getpid().as_raw();
    let mut ancestor = Some(process);
    while let Some(process) = ancestor {
        if process.parent == us {
            return true;
        }
        ancestor = all.get(&process.parent).filter(|parent| parent.id != process.id);
    }
    false
}

/// `id (name) state parent …`; the name may contain anything, so the last parenthesis ends it.
fn read(id: i32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (head, tail) = stat.rsplit_once(") ")?;
    let name = head.split_once('(')?.1.to_owned();
    let mut fields = tail.split(' ');
    let zombie = fields.next()? == "Z";
    Some(Process { id, parent: fields.next()?.parse().ok()?, name, zombie })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_grandchild_is_found_and_a_stranger_is_not() {
        let mut child = Command::new("sh").args(["-c", "sleep 60 & wait"]).spawn().unwrap();
        let id = i32::try_from(child.id()).unwrap();
        let mut found = Vec::new();
        for _ in 0..100 {
            found = descendants();
            if found.iter().any(|process| process.parent == id) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        for process in found.iter().filter(|process| process.parent == id) {
            kill(Pid::from_raw(process.id), Signal::SIGKILL).unwrap();
        }
        child.wait().unwrap();
        assert!(found.iter().any(|process| process.id == id));
        assert!(found.iter().any(|process| process.parent == id && process.name == "sleep"));
        assert!(!found.iter().any(|process| process.id == 1));
    }
}
