//! A Python with gRPC, which runs the client of `docs/api.md`. Debian's packages have no compiler of messages that fits their gRPC; PyPI's are put into a
//! folder of their own, and a Python beside them looks there.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::by_hand::or_by_hand;
use super::{cache, packages};
use crate::process;

/// The version of its three packages.
pub(crate) const VERSION: &str = "1.85.1";

const PACKAGES: [&str; 3] = ["grpcio", "grpcio-tools", "grpcio-status"];

/// Where that Python is, which is made if it is not there.
pub(super) fn find_or_install() -> Result<PathBuf> {
    let ours = cache::directory()?.join("tools").join(format!("python-grpc-{VERSION}"));
    let python = ours.join("python3");
    if python.is_file() {
        return Ok(python);
    }
    let by_hand =
        format!("pip install {} into a Python, and name it by SHUNT_PYTHON_GRPC", PACKAGES.join(" "));
    or_by_hand(make(&ours).context("there is no Python with gRPC"), &by_hand)?;
    Ok(python)
}

fn make(ours: &Path) -> Result<()> {
    packages::ensure_pip()?;
    let _guard = cache::lock()?;
    eprintln!("setup: fetching gRPC {VERSION} for Python (10 MB)");
    cache::in_scratch(ours, |scratch, ours| {
        let mut pip = Command::new("python3");
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--root-user-action=ignore",
        ]);
        pip.args(["--only-binary=:all:", "--target"]).arg(scratch.join("modules"));
        process::run(pip.args(PACKAGES.map(|name| format!("{name}=={VERSION}"))))?;
        let python = scratch.join("python3");
        let script = format!("#!/bin/sh\nPYTHONPATH={}/modules exec python3 \"$@\"\n", ours.display());
        fs::write(&python, script)
            .and_then(|()| fs::set_permissions(&python, fs::Permissions::from_mode(0o755)))
            .and_then(|()| fs::rename(scratch, ours))
            .with_context(|| format!("cannot put {} in place", ours.display()))
    })
}
