//! The plugin `loopback`, which shunt does not have.
//!
//! containerd calls it for every pod, to set `lo` up, and no pod starts where it is missing. CRI-O and podman do without it.

use std::path::{Path, PathBuf};

/// The reference plugin's name.
const LOOPBACK: &str = "loopback";

/// There is no plugin `loopback`.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0} is missing, and shunt has no plugin of that name: containerd calls it for every pod. Install the reference plugins on the \
     node (Debian: containernetworking-plugins, Kubernetes' packages: kubernetes-cni) with their programs in that directory, or say \
     --without-loopback where the runtime needs none, as CRI-O"
)]
pub struct NoLoopback(PathBuf);

/// Fails where a runtime that needs the plugin would not find it.
///
/// # Errors
/// [`NoLoopback`], with the cure.
pub fn loopback(bin_dir: &Path) -> Result<(), NoLoopback> {
    let path = bin_dir.join(LOOPBACK);
    if path.exists() { Ok(()) } else { Err(NoLoopback(path)) }
}
