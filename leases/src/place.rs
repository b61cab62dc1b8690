//! Paths that one process names and another one opens later: usable ones, opened without following a link.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};

use crate::error::Error;

/// The longest path that the kernel takes (`PATH_MAX`).
const MAX_PATH: usize = 4096;

/// Whether a path may be handed on as a `dataDir`: absolute, without `..`, of a possible length.
pub fn is_usable(data_dir: &Path) -> bool {
    data_dir.is_absolute()
        && data_dir.as_os_str().len() < MAX_PATH
        && data_dir.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
}

/// The path of a directory as it is to be handed on: without links in it, and usable.
///
/// # Errors
/// The file system's.
pub fn straightened(data_dir: &Path) -> io::Result<PathBuf> {
    // One question where there is nothing to straighten, instead of one for each part.
    if is_usable(data_dir) && open(data_dir).is_ok() {
        return Ok(data_dir.components().collect());
    }
    data_dir.canonicalize()
}

/// A path to what is open that leads there and nowhere else, as long as it is open.
pub(crate) fn way_to(place: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", place.as_raw_fd()))
}

/// The path of a network's directory.
pub(crate) fn path_of(data_dir: &Path, network: &str) -> Result<PathBuf, Error> {
    if !is_usable(data_dir) {
        return Err(Error::Path(data_dir.to_owned()));
    }
    let mut parts = Path::new(network).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(name)), None) if name == network => Ok(data_dir.join(network)),
        _ => Err(Error::Network(network.to_owned())),
    }
}

/// Opens a directory as a place only (`O_PATH`), and follows no symbolic link on the way.
pub(crate) fn open(path: &Path) -> Result<OwnedFd, Errno> {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    openat2(AT_FDCWD, path, how)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_path_is_straightened_once_and_stays_what_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let there = dir.path().canonicalize().unwrap().join("there");
        fs::create_dir(&there).unwrap();
        symlink(&there, dir.path().join("link")).unwrap();
        for way in ["there", "./there/", "there/../there", "link", "link/.", "link/../there"] {
            assert_eq!(straightened(&dir.path().join(way)).unwrap().as_os_str(), there.as_os_str(), "{way}");
        }
        assert!(straightened(&dir.path().join("none")).is_err());
    }
}
