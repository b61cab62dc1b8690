//! The target that the plugin is built for: one whose C library is linked in and starts at once.

use std::path::Path;
use std::process::Command;

use super::lookup;
use crate::{process, workspace};

/// A static target whose standard library is here, or could be had from rustup; none otherwise, and then it is said why.
pub(crate) fn find_or_install() -> Option<String> {
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    if is_here(&target) {
        return Some(target);
    }
    if lookup::program("rustup").is_none() {
        eprintln!("setup: the standard library for {target} is missing, and there is no rustup to add it");
        return None;
    }
    eprintln!("setup: adding the target {target} with rustup");
    let mut rustup = Command::new("rustup");
    rustup.current_dir(workspace::root()).args(["target", "add", &target]);
    if let Err(error) = process::quietly(&mut rustup) {
        eprintln!("setup: {error:#}");
        return None;
    }
    is_here(&target).then_some(target)
}

/// Whether the compiler has what it would link.
fn is_here(target: &str) -> bool {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.current_dir(workspace::root()).args(["--print", "target-libdir", "--target", target]);
    process::output(&mut rustc).is_ok_and(|directory| Path::new(directory.trim()).is_dir())
}
