//! Debian's package manager. Its lists may be empty (a fresh container) or old: one refresh is tried before giving up.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::lookup;
use crate::process;

/// Fails on a system without apt.
pub(super) fn require() -> Result<()> {
    if lookup::program("apt-get").is_none() {
        bail!("there is no apt-get on this system");
    }
    Ok(())
}

/// The version that would be installed.
pub(super) fn candidate(package: &str) -> Result<String> {
    require()?;
    if let Some(version) = listed(package)? {
        return Ok(version);
    }
    refresh()?;
    listed(package)?.with_context(|| format!("apt knows no package {package}"))
}

fn listed(package: &str) -> Result<Option<String>> {
    let policy = process::output(Command::new("apt-cache").args(["policy", package]).env("LC_ALL", "C"))?;
    let version = policy.lines().find_map(|line| line.trim().strip_prefix("Candidate: "));
    Ok(version.filter(|version| *version != "(none)").map(str::to_owned))
}

/// Names of the packages that match a regular expression.
pub(crate) fn search(pattern: &str) -> Result<Vec<String>> {
    require()?;
    let listing = process::output(Command::new("apt-cache").args(["search", "--names-only", pattern]))?;
    Ok(listing.lines().filter_map(|line| Some(line.split_once(" - ")?.0.to_owned())).collect())
}

/// Everything that the packages depend on, themselves included.
pub(super) fn dependencies(packages: &[&str]) -> Result<Vec<String>> {
    let mut command = Command::new("apt-cache");
    command.args(["depends", "--recurse"]);
    for relation in ["recommends", "suggests", "conflicts", "breaks", "replaces", "enhances"] {
        command.arg(format!("--no-{relation}"));
    }
    let listing = process::output(command.args(packages).env("LC_ALL", "C"))?;
    // A package stands at the line's start, its relations below it; a virtual one is in angle brackets.
    let names = listing.lines().filter(|line| !line.starts_with([' ', '<', '|']));
    Ok(names.map(str::to_owned).collect())
}

pub(super) fn is_installed(package: &str) -> bool {
    let query = Command::new("dpkg-query").args(["-W", "-f=${db:Status-Status}\n", package]).output();
    query.is_ok_and(|output| output.stdout.starts_with(b"installed"))
}

/// Fetches the lists. One unreachable third-party source is no reason to stop: what matters shows when installing.
pub(crate) fn refresh() -> Result<()> {
    if !lookup::is_root() {
        bail!("apt's lists must be fetched first; by hand: sudo apt-get update");
    }
    eprintln!("setup: apt-get update");
    if let Err(error) = process::run(apt_get().args(["-qq", "update"])) {
        eprintln!("setup: {error:#}; trying with the lists that are there");
    }
    Ok(())
}

/// Downloads packages into a directory; needs no root unless the lists are old.
pub(crate) fn download(packages: &[String], directory: &Path) -> Result<()> {
    let attempt = || process::run(apt_get().arg("-qq").arg("download").args(packages).current_dir(directory));
    attempt().or_else(|_| refresh().and_then(|()| attempt()))
}

/// Installs packages; needs root.
pub(super) fn install(packages: &[&str]) -> Result<()> {
    let attempt =
        || process::run(apt_get().args(["-qq", "-y", "--no-install-recommends", "install"]).args(packages));
    for package in packages {
        candidate(package)?;
    }
    attempt().or_else(|_| refresh().and_then(|()| attempt()))
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command
        .args(["-o", "DPkg::Lock::Timeout=120", "-o", "APT::Sandbox::User=root"])
        .env("DEBIAN_FRONTEND", "noninteractive")
        .env("LC_ALL", "C");
    command
}
