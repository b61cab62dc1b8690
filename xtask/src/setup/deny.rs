//! cargo-deny, which only `lint` needs. It takes minutes to compile, so any version that is there will do.

use std::path::PathBuf;

use anyhow::Result;

use super::by_hand::or_by_hand;
use super::{cache, lookup};
use crate::{process, workspace};

const VERSION: &str = "0.20.2";

pub(super) fn find_or_install() -> Result<PathBuf> {
    let ours = cache::directory()?.join("tools");
    let present =
        [Some(ours.join("bin/cargo-deny")), lookup::cargo_bin("cargo-deny"), lookup::program("cargo-deny")];
    if let Some(path) = present.into_iter().flatten().find(|path| path.is_file()) {
        return Ok(path);
    }
    let _guard = cache::lock()?;
    eprintln!("setup: installing cargo-deny {VERSION} into {} (some minutes)", ours.display());
    let mut cargo = workspace::cargo();
    cargo.args(["install", "--quiet", "--locked", "--version", VERSION, "cargo-deny", "--root"]).arg(&ours);
    or_by_hand(process::run(&mut cargo), "cargo install --locked cargo-deny")?;
    Ok(ours.join("bin/cargo-deny"))
}
