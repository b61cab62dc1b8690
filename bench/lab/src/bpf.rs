//! A BPF file system of one's own, so that pins neither meet others' nor outlive the lab.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nix::mount::{MntFlags, MsFlags, mount, umount2};

/// A mounted BPF file system; unmounting it lets go of every pin in it.
#[derive(Debug)]
pub(crate) struct BpfFs {
    path: PathBuf,
}

impl BpfFs {
    /// Mounts one at `path`, which is made.
    ///
    /// # Errors
    /// When not root, or the kernel has no BPF.
    pub(crate) fn mount(path: &Path) -> Result<Self> {
        std::fs::create_dir(path).with_context(|| format!("create {}", path.display()))?;
        mount(Some("bpf"), path, Some("bpf"), MsFlags::empty(), Some("mode=0700"))
            .with_context(|| format!("mount a BPF file system at {}", path.display()))?;
        Ok(Self { path: path.to_path_buf() })
    }
}

impl Drop for BpfFs {
    fn drop(&mut self) {
        umount2(&self.path, MntFlags::MNT_DETACH).ok();
        drop(std::fs::remove_dir(&self.path));
    }
}
