//! The process that called the plugin.

use std::fs;

use nix::unistd::getppid;

/// Its name (`/proc/PID/comm`), as `containerd`; empty where it has gone or is in another PID namespace. Without `caller` it is this
/// process's parent.
pub(super) fn name(caller: Option<u32>) -> String {
    let caller = caller.map_or_else(|| getppid().to_string(), |caller| caller.to_string());
    let name = fs::read_to_string(format!("/proc/{caller}/comm")).unwrap_or_default();
    name.trim().to_owned()
}
