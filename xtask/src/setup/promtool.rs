//! promtool, which runs the alert rules' tests. Debian's package of it is Prometheus itself and would start a server: it is unpacked, not
//! installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::by_hand::or_by_hand;
use super::{apt, cache, lookup};
use crate::process;

/// The package, and where the program lies in it.
const PACKAGE: &str = "prometheus";
const PROGRAM: &str = "usr/bin/promtool";

/// Where the program is: one that is installed, ours, or the package's, which is fetched.
pub(super) fn find_or_install() -> Result<PathBuf> {
    let ours = cache::directory()?.join("tools/promtool");
    let present = [Some(ours.clone()), lookup::program("promtool")];
    if let Some(path) = present.into_iter().flatten().find(|path| path.is_file()) {
        return Ok(path);
    }
    or_by_hand(fetch(&ours).context("there is no promtool"), "install promtool (prometheus.io) into PATH")?;
    Ok(ours)
}

fn fetch(ours: &Path) -> Result<()> {
    apt::require()?;
    let _guard = cache::lock()?;
    eprintln!("setup: unpacking promtool of Debian's {PACKAGE} (19 MB)");
    cache::in_scratch(ours, unpack)
}

fn unpack(scratch: &Path, ours: &Path) -> Result<()> {
    apt::download(&[PACKAGE.to_owned()], scratch)?;
    let entries = fs::read_dir(scratch).context("cannot read what apt has fetched")?;
    let mut files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let archive = files.find(|path| path.extension().is_some_and(|extension| extension == "deb"));
    let archive = archive.context("apt has fetched no package")?;
    process::run(Command::new("dpkg").arg("-x").arg(&archive).arg(scratch))?;
    fs::rename(scratch.join(PROGRAM), ours).with_context(|| format!("cannot put {} in place", ours.display()))
}
