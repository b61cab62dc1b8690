//! A compiler for `bpfel-unknown-none`.

use std::fmt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};

use super::linker;
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
