//! The directories of labs: their names, and their removal with all that is mounted below.

use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, umount2};

/// What the directory's name begins with; the process id and a number follow.
pub(crate) const PREFIX: &str = "shunt-lab-";

/// Where the directories are.
pub(crate) const RUN: &str = "/run";

/// Unmounts whatever is still mounted below `root` and removes it.
pub(crate) fn remove(root: &Path) {
    for mount in mounts_below(root) {
        umount2(&mount, MntFlags::MNT_DETACH).ok();
    }
    drop(std::fs::remove_dir_all(root));
}

/// Mount points below `root`, the innermost first.
pub(crate) fn mounts_below(root: &Path) -> Vec<PathBuf> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let points = table.lines().filter_map(|line| line.split(' ').nth(4).map(PathBuf::from));
    let mut below: Vec<_> = points.filter(|point| point.starts_with(root)).collect();
    below.reverse();
    below
}
