//! netavark, which the tests run with shunt as its plugin. Debian's is too old to know plugins; this one is built, in about 80 s on two
//! processors.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::by_hand::or_by_hand;
use super::{cache, packages};
use crate::{process, workspace};

/// The version, whose bridge driver the plugin is compared with.
pub(crate) const VERSION: &str = "2.1.0";

/// Where the program is, which is built if it is not there. Another version may answer differently.
pub(super) fn find_or_install() -> Result<PathBuf> {
    let ours = cache::directory()?.join("tools").join(format!("netavark-{VERSION}"));
    let program = ours.join("bin/netavark");
    if program.is_file() {
        return Ok(program);
    }
    let by_hand =
        format!("cargo install --locked --debug --version {VERSION} netavark --root {}", ours.display());
    or_by_hand(build(&ours).context("there is no netavark"), &by_hand)?;
    Ok(program)
}

/// Without optimisation and debug information: it is no part of what is measured. What the build takes on the disk, 600 MB, goes in any case.
fn build(ours: &Path) -> Result<()> {
    packages::ensure_protobuf()?;
    let _guard = cache::lock()?;
    eprintln!("setup: building netavark {VERSION} into {} (80 s)", ours.display());
    let scratch = ours.with_extension("build");
    let mut cargo = workspace::cargo();
    cargo.args(["install", "--quiet", "--locked", "--debug", "--bin", "netavark", "--version", VERSION]);
    cargo.args(["netavark", "--root"]).arg(ours);
    cargo.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_TARGET_DIR", &scratch);
    let built = process::run(&mut cargo);
    fs::remove_dir_all(&scratch).ok();
    built
}
