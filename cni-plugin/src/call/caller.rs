//! The process that called the plugin.

use std::fs;

use nix::unistd::getppid;

/// Its name (`/proc/PID/comm`), as `containerd`; empty where it has gone or is in another PID namespace.
pub(super) fn name() -> String {
    let name = fs::read_to_string(format!("/proc/{}/comm", getppid())).unwrap_or_default();
    name.trim().to_owned()
}
