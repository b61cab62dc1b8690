//! Looking for programs without running any.

use std::env;
use std::path::{Path, PathBuf};

/// Where administrators' programs are, which an ordinary user's PATH may lack.
const SBIN: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// The first program of that name in PATH or one of the sbin directories.
pub(super) fn program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let directories = env::split_paths(&path).chain(SBIN.iter().map(PathBuf::from));
    directories.map(|directory| directory.join(name)).find(|candidate| candidate.is_file())
}

/// Where `cargo install` puts binaries by default.
pub(super) fn cargo_bin(name: &str) -> Option<PathBuf> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(home()?.join(".cargo")))?;
    Some(home.join("bin").join(name)).filter(|candidate| candidate.is_file())
}

fn home() -> Option<PathBuf> {
    env::var_os("HOME").map(|home| Path::new(&home).to_path_buf())
}

pub(crate) fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}
