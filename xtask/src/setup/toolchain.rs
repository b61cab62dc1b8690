//! The compiler for `bpfel-unknown-none`. The target has no prebuilt `core` in rustup, so there are two ways:
//! build `core` from the rust-src component, or take Debian's compiler, which has a prebuilt one.

use std::fmt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{debian_toolchain, linker, lookup};
use crate::process;

/// Where a toolchain's `core` comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Core {
    /// Shipped with the compiler.
    Prebuilt,
    /// Compiled from rust-src with `-Z build-std`.
    FromSource,
}

/// A compiler that can build the kernel programs. Cargo itself is always the one that runs us.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Toolchain {
    /// What a person would call it.
    pub(crate) name: String,
    pub(crate) rustc: PathBuf,
    /// Where its shared libraries are; bpf-linker loads its LLVM from there too.
    pub(crate) libraries: PathBuf,
    pub(crate) core: Core,
}

impl Toolchain {
    /// What cargo has to be told about `core`.
    pub(crate) fn cargo_arguments(&self) -> &'static [&'static str] {
        match self.core {
            Core::Prebuilt => &[],
            Core::FromSource => &["-Z", "build-std=core"],
        }
    }

    /// The proof that `core` can be had.
    pub(super) fn core_marker(&self) -> Option<PathBuf> {
        let root = self.rustc.parent()?.parent()?;
        Some(match self.core {
            Core::Prebuilt => root.join("lib/rustlib/bpfel-unknown-none/lib"),
            // rustup can list rust-src as installed while its files are gone: this is the one that cargo reads.
            Core::FromSource => root.join("lib/rustlib/src/rust/library/Cargo.lock"),
        })
    }

    /// What the compiler calls itself. Fails when it cannot run or has no fitting LLVM.
    pub(super) fn verify(&self) -> Result<String> {
        let version =
            process::output(Command::new(&self.rustc).arg("-vV").env("LD_LIBRARY_PATH", &self.libraries))?;
        let llvm = version.lines().find_map(|line| line.strip_prefix("LLVM version: ")).unwrap_or("unknown");
        if llvm.split('.').next() != Some(linker::LLVM) {
            bail!("{} uses LLVM {llvm}; bpf-linker {} needs {}", self.name, linker::VERSION, linker::LLVM);
        }
        Ok(version.lines().next().unwrap_or(&self.name).to_owned())
    }
}

impl fmt::Display for Toolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let core = match self.core {
            Core::Prebuilt => "its prebuilt core",
            Core::FromSource => "core from rust-src",
        };
        write!(f, "{}, with {core} ({})", self.name, self.rustc.display())
    }
}

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
