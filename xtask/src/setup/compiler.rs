//! Finds the compiler for `bpfel-unknown-none`. The target has no prebuilt `core` in rustup, so there are two ways:
//! build `core` from the rust-src component, or take Debian's compiler, which has a prebuilt one.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::toolchain::{Core, Toolchain};
use super::{debian_toolchain, lookup};
use crate::process;

/// Takes the first that works: a rustup toolchain with rust-src, Debian's compiler, a freshly added rust-src.
pub(super) fn find_or_install() -> Result<Toolchain> {
    let mut refused = Vec::new();
    for name in ["nightly", ""] {
        match rustup(name) {
            Ok(toolchain) => return Ok(toolchain),
            Err(error) => refused.push(format!("{error:#}")),
        }
    }
    match debian_toolchain::find_or_install() {
        Ok(toolchain) => return Ok(toolchain),
        Err(error) => refused.push(format!("Debian's rustc-web: {error:#}")),
    }
    if lookup::program("rustup").is_some() {
        eprintln!("setup: adding the component rust-src with rustup");
        match process::quietly(Command::new("rustup").args(["component", "add", "rust-src"]))
            .and_then(|()| rustup(""))
        {
            Ok(toolchain) => return Ok(toolchain),
            Err(error) => refused.push(format!("{error:#}")),
        }
    }
    bail!(
        "no compiler for the kernel programs:\n  - {}\nby hand, one of these:\n  \
         rustup component add rust-src\n  \
         rustup toolchain install nightly --component rust-src\n  \
         apt-get update && apt-get install rustc-web libstd-rust-web-dev-bpf   (Debian 12 with its security updates)",
        refused.join("\n  - ")
    )
}

/// The rustup toolchain of that name (the active one when empty), if its rust-src is really there.
fn rustup(name: &str) -> Result<Toolchain> {
    let shown = if name.is_empty() { "the active toolchain" } else { name };
    let mut rustc = Command::new("rustc");
    // Asking for a toolchain that is not there must not download it.
    rustc.env("RUSTUP_AUTO_INSTALL", "0");
    if !name.is_empty() {
        rustc.arg(format!("+{name}"));
    }
    let sysroot = process::output(rustc.args(["--print", "sysroot"])).with_context(|| shown.to_owned())?;
    let sysroot = PathBuf::from(sysroot.trim_end());
    let mut toolchain = Toolchain {
        name: shown.to_owned(),
        rustc: sysroot.join("bin/rustc"),
        libraries: sysroot.join("lib"),
        core: Core::FromSource,
    };
    if !toolchain.core_marker().is_some_and(|marker| marker.exists()) {
        bail!("{shown}: has no rust-src");
    }
    toolchain.name = toolchain.verify()?;
    Ok(toolchain)
}
