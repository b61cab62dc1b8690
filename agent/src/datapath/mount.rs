//! Mounts the BPF file system if there is none.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};

/// Why there is no bpffs.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The path has no parent to mount on.
    #[error(
        "{0} cannot be the bpffs directory: name a directory below the mount point, as /sys/fs/bpf/shunt"
    )]
    NoParent(PathBuf),
    /// The parent cannot be looked at or made.
    #[error("{path}: {source}")]
    Parent {
        /// The parent.
        path: PathBuf,
        /// The kernel's word.
        source: io::Error,
    },
    /// The parent has other things in it.
    #[error(
        "{0} is not a BPF file system and not empty, so none is mounted there: run `mount -t bpf bpf {0}`"
    )]
    Occupied(PathBuf),
    /// The kernel refused.
    #[error(
        "{path} is not a BPF file system and none could be mounted: {source}; run `mount -t bpf bpf {path}`"
    )]
    Refused {
        /// The parent.
        path: PathBuf,
        /// The kernel's word.
        source: io::Error,
    },
}

/// What the parent of a directory for pins is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parent<'a> {
    /// A BPF file system.
    Mounted,
    /// An empty directory, or none: one can be mounted there.
    Free(&'a Path),
}

/// Looks at the parent of `directory`, and changes nothing.
///
/// # Errors
/// [`MountError`], each with what to do by hand.
pub fn look(directory: &Path) -> Result<Parent<'_>, MountError> {
    let parent = directory
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .ok_or_else(|| MountError::NoParent(directory.to_path_buf()))?;
    let failed = |source| MountError::Parent { path: parent.to_path_buf(), source };
    if !parent.exists() {
        return Ok(Parent::Free(parent));
    }
    let is_bpf = |path: &Path| statfs(path).map(|stat| stat.filesystem_type() == BPF_FS_MAGIC);
    if is_bpf(parent).map_err(|errno| failed(errno.into()))? {
        return Ok(Parent::Mounted);
    }
    match fs::read_dir(parent).map_err(failed)?.next() {
        Some(_) => Err(MountError::Occupied(parent.to_path_buf())),
        None => Ok(Parent::Free(parent)),
    }
}

/// Makes sure that the parent of `directory` is a BPF file system, and mounts one if it is an empty directory. Whether it did.
///
/// # Errors
/// As [`look`], and [`MountError::Refused`].
pub fn ensure(directory: &Path) -> Result<bool, MountError> {
    let Parent::Free(parent) = look(directory)? else { return Ok(false) };
    fs::create_dir_all(parent).map_err(|source| MountError::Parent { path: parent.to_path_buf(), source })?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("bpf"), parent, Some("bpf"), flags, Some("mode=0700"))
        .map_err(|errno| MountError::Refused { path: parent.to_path_buf(), source: errno.into() })?;
    Ok(true)
}
