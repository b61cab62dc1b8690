//! Where things are in the checkout.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The checkout's root.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// `target`, wherever the user has put it.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |path| root().join(path))
}

/// A release binary that `build` leaves.
pub(crate) fn release_binary(name: &str) -> PathBuf {
    target().join("release").join(name)
}

/// A release binary as it was built for a target whose C library is linked in.
pub(crate) fn static_binary(target: &str, name: &str) -> PathBuf {
    self::target().join(target).join("release").join(name)
}

/// Where cargo keeps the sources of what the workspace depends on.
pub(crate) fn registry() -> PathBuf {
    let home = || std::env::home_dir().unwrap_or_default().join(".cargo");
    std::env::var_os("CARGO_HOME").map_or_else(home, PathBuf::from).join("registry/src")
}

/// The cargo that runs us, started in the checkout's root.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}
