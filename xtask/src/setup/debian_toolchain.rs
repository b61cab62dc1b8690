//! Debian's rustc-web, unpacked into the cache.
//!
//! It is not installed: the package conflicts with a packaged rustc and with rustup, and unpacking needs no root.
//! The compiler finds its sysroot from where it lies itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::toolchain::{Core, Toolchain};
use super::{apt, cache, linker};
use crate::process;

const ROOTS: [&str; 2] = ["rustc-web", "libstd-rust-web-dev-bpf"];

pub(super) fn find_or_install() -> Result<Toolchain> {
    let version = apt::candidate(ROOTS[0])?;
    let directory = cache::directory()?.join(format!("rustc-web-{version}"));
    let toolchain = describe(&directory, &version);
    if !toolchain.rustc.is_file() {
        install(&directory)?;
    }
    let marker = toolchain.core_marker().context("a compiler lies in a directory")?;
    if !marker.is_dir() {
        bail!("{} is missing; remove {} and try again", marker.display(), directory.display());
    }
    toolchain.verify()?;
    Ok(toolchain)
}

fn describe(directory: &Path, version: &str) -> Toolchain {
    let libraries = directory.join("usr/lib").join(multiarch());
    let name = format!("Debian's rustc-web {version}");
    Toolchain { name, rustc: directory.join("usr/bin/rustc"), libraries, core: Core::Prebuilt }
}

fn multiarch() -> String {
    format!("{}-linux-gnu", std::env::consts::ARCH)
}

/// Downloads and unpacks beside the final place; only a complete toolchain gets its name.
fn install(directory: &Path) -> Result<()> {
    let packages = wanted()?;
    eprintln!("setup: unpacking Debian's {} into {}", packages.join(" "), directory.display());
    let unfinished = directory.with_extension("unfinished");
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished).with_context(|| format!("cannot remove {}", unfinished.display()))?;
    }
    let downloads = unfinished.join("downloads");
    fs::create_dir_all(&downloads).with_context(|| format!("cannot create {}", downloads.display()))?;
    apt::download(&packages, &downloads)?;
    for archive in archives(&downloads)? {
        process::run(Command::new("dpkg").arg("-x").arg(&archive).arg(&unfinished))?;
    }
    fs::remove_dir_all(&downloads).with_context(|| format!("cannot remove {}", downloads.display()))?;
    fs::rename(&unfinished, directory).with_context(|| format!("cannot create {}", directory.display()))
}

/// The two packages with their parts of the compiler, and any shared library that the machine lacks.
fn wanted() -> Result<Vec<String>> {
    let llvm = format!("libllvm{}", linker::LLVM);
    let mut closure = apt::dependencies(&ROOTS)?;
    if !closure.contains(&llvm) {
        // Old lists know an older compiler.
        apt::refresh()?;
        closure = apt::dependencies(&ROOTS)?;
    }
    if !closure.contains(&llvm) {
        bail!("this release's rustc-web does not use {llvm}, which bpf-linker {} needs", linker::VERSION);
    }
    closure.retain(|package| {
        let compiler = package == ROOTS[0] || package.starts_with("libstd-rust-web") || *package == llvm;
        let library = package.starts_with("lib") && !package.ends_with("-dev");
        compiler || (library && !apt::is_installed(package))
    });
    Ok(closure)
}

fn archives(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    Ok(paths.into_iter().filter(|path| path.extension().is_some_and(|end| end == "deb")).collect())
}
