//! The processes that the tests started, orphans included.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, getpid};

const TICK: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(5);

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

/// Does a parent's duty by the orphans that have ended, until `child` has ended too; that one is for others to wait for.
///
/// Without it they would stay zombies, and a process namespace does not end while one of its processes is a zombie.
/// Whoever still holds the tests' output open some time after `child` would keep us reading for ever: he is ended, and
/// returned.
pub(super) fn guard(child: u32, output_ended: Arc<AtomicBool>) -> JoinHandle<Vec<Process>> {
    thread::spawn(move || {
        while is_living(child) {
            reap_orphans(Some(child));
            thread::sleep(TICK);
        }
        let deadline = Instant::now() + PATIENCE;
        while !output_ended.load(Ordering::Relaxed) && Instant::now() < deadline {
            thread::sleep(TICK);
        }
        if output_ended.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let holding_on = descendants();
        end_descendants();
        holding_on
    })
}

/// Does it once, for all but `child`. Nothing else may be waiting for a process of ours meanwhile.
pub(super) fn reap_orphans(child: Option<u32>) {
    let us = getpid().as_raw();
    let ended = all().into_values().filter(|process| process.parent == us && process.zombie);
    for orphan in ended.filter(|process| child.is_none() || u32::try_from(process.id).ok() != child) {
        // It is a zombie, so this does not block, and there is nobody else whom its status concerns.
        waitpid(Pid::from_raw(orphan.id), Some(WaitPidFlag::WNOHANG)).ok();
    }
}

fn is_living(child: u32) -> bool {
    i32::try_from(child).ok().and_then(read).is_some_and(|process| !process.zombie)
}

/// Every living process below us.
pub(super) fn descendants() -> Vec<Process> {
    let all = all();
    all.values().filter(|process| !process.zombie && is_below_us(process, &all)).cloned().collect()
}

/// Ends them, by their ids.
pub(super) fn end_descendants() {
    for process in descendants() {
        // It may have ended by itself in the meantime.
        kill(Pid::from_raw(process.id), Signal::SIGKILL).ok();
    }
}

fn all() -> BTreeMap<i32, Process> {
    let ids = fs::read_dir("/proc").into_iter().flatten();
    let ids = ids.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    ids.filter_map(|id| Some((id, read(id)?))).collect()
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
            if found.iter().any(|process| process.parent == id && process.name == "sleep") {
                break;
            }
            thread::sleep(Duration::from_millis(20));
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
