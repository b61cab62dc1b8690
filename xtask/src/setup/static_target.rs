//! The targets that what is shipped is built for: those whose C library is linked in.

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use clap::ValueEnum;

use super::{lookup, packages};
use crate::{process, workspace};

/// A processor, as container images name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Processor {
    Amd64,
    Arm64,
}

impl Processor {
    /// The building machine's; none if nothing is shipped for it.
    pub(crate) fn of_host() -> Option<Self> {
        match std::env::consts::ARCH {
            "x86_64" => Some(Self::Amd64),
            "aarch64" => Some(Self::Arm64),
            _ => None,
        }
    }

    fn triple(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64-unknown-linux-musl",
            Self::Arm64 => "aarch64-unknown-linux-musl",
        }
    }

    /// Debian's C compiler for it on a machine of the other kind.
    fn cross_compiler(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64-linux-gnu-gcc",
            Self::Arm64 => "aarch64-linux-gnu-gcc",
        }
    }
}

/// A target whose standard library and C compiler are here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StaticTarget {
    /// The target triple.
    pub(crate) triple: &'static str,
    /// What compiles C for it, and links; none where cargo and the crates find it.
    pub(crate) compiler: Option<&'static str>,
}

/// The host's target with its standard library, for a program without C; none otherwise, and then it is said why.
pub(crate) fn of_host() -> Option<&'static str> {
    let triple = Processor::of_host()?.triple();
    add(triple).inspect_err(|error| eprintln!("setup: {error:#}")).is_ok().then_some(triple)
}

/// A target, and a C compiler for it.
///
/// # Errors
/// One of them is not here and could not be had; the error says how a person can install it.
pub(crate) fn find_or_install(processor: Processor) -> Result<StaticTarget> {
    let triple = processor.triple();
    add(triple)?;
    if Processor::of_host() == Some(processor) {
        packages::ensure_static_compilers()?;
        return Ok(StaticTarget { triple, compiler: None });
    }
    packages::ensure_cross_compilers(processor.cross_compiler())?;
    Ok(StaticTarget { triple, compiler: Some(processor.cross_compiler()) })
}

/// Adds the target's standard library with rustup, where it is not here.
fn add(triple: &str) -> Result<()> {
    if is_here(triple) {
        return Ok(());
    }
    if lookup::program("rustup").is_none() {
        anyhow::bail!("the standard library for {triple} is missing, and there is no rustup to add it");
    }
    eprintln!("setup: adding the target {triple} with rustup");
    let mut rustup = Command::new("rustup");
    rustup.current_dir(workspace::root()).args(["target", "add", triple]);
    process::quietly(&mut rustup)?;
    anyhow::ensure!(is_here(triple), "rustup has added {triple}, and yet rustc does not find it");
    Ok(())
}

/// Whether the compiler has what it would link.
fn is_here(target: &str) -> bool {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.current_dir(workspace::root()).args(["--print", "target-libdir", "--target", target]);
    process::output(&mut rustc).is_ok_and(|directory| Path::new(directory.trim()).is_dir())
}
