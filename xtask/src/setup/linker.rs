//! bpf-linker, which links bitcode and writes BTF. Newer versions want a system LLVM; this one loads the compiler's.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::by_hand::or_by_hand;
use super::{cache, lookup};
use crate::{process, workspace};

pub(super) const VERSION: &str = "0.10.2";
/// The LLVM whose bitcode it reads: the compiler's must be the same.
pub(super) const LLVM: &str = "22";

pub(super) fn find_or_install() -> Result<PathBuf> {
    let ours = cache::directory()?.join("tools");
    let present =
        [Some(ours.join("bin/bpf-linker")), lookup::cargo_bin("bpf-linker"), lookup::program("bpf-linker")];
    if let Some(path) = present.into_iter().flatten().find(is_right_version) {
        return Ok(path);
    }
    eprintln!("setup: installing bpf-linker {VERSION} into {} (about a minute)", ours.display());
    let mut cargo = workspace::cargo();
    cargo.args(["install", "--quiet", "--locked", "--version", VERSION, "bpf-linker", "--root"]).arg(&ours);
    or_by_hand(process::run(&mut cargo), &format!("cargo install --locked bpf-linker --version {VERSION}"))?;
    Ok(ours.join("bin/bpf-linker"))
}

fn is_right_version(path: &PathBuf) -> bool {
    path.is_file()
        && process::output(Command::new(path).arg("--version"))
            .is_ok_and(|version| version.split_whitespace().last() == Some(VERSION))
}
