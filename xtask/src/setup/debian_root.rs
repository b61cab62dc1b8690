//! The Debian root that packages are tried in: the essential packages of this machine's release, and what the tests run there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::cache;
use crate::process;

/// What is in the root beside the essential packages.
const INCLUDED: &str = "iproute2,iputils-ping";

/// Where apt's sources are listed, in the one form or the other.
const SOURCES: [&str; 2] = ["/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list"];

/// The root as a tar file, which is made once for each release.
pub(super) fn find_or_make() -> Result<PathBuf> {
    let release = release()?;
    let root = cache::directory()?.join(format!("debian-root-{release}.tar"));
    if root.is_file() {
        return Ok(root);
    }
    let _guard = cache::lock()?;
    eprintln!("setup: making a Debian root ({release}, 150 MB) in {}", root.display());
    let unfinished = root.with_extension("unfinished");
    let mut make = Command::new("mmdebstrap");
    make.args(["--quiet", "--format=tar", "--variant=essential"]);
    make.arg(format!("--include={INCLUDED}")).arg(&release).arg(&unfinished);
    // Where this machine's packages come from, the root's do too.
    make.args(SOURCES.iter().filter(|path| Path::new(path).is_file()).take(1));
    process::run(&mut make)?;
    fs::rename(&unfinished, &root).with_context(|| format!("cannot write {}", root.display()))?;
    Ok(root)
}

/// The release's name.
fn release() -> Result<String> {
    let about = fs::read_to_string("/etc/os-release").context("cannot read /etc/os-release")?;
    let name = about.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let is_debian = about.lines().any(|line| line == "ID=debian");
    name.filter(|_| is_debian).map(str::to_owned).context("this is no Debian, of which a root could be made")
}
