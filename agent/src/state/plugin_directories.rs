//! Where the plugin is beside the default directory: noted by who puts it there, so that an upgrade renews it and an uninstallation takes it
//! away. One file in the state directory, written before the plugin is, and bounded.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use shunt_regular_file::{Outlives, read_own, remove, replace, unfinished};

/// Where runtimes look for plugins unless they are told otherwise.
pub const DEFAULT: &str = "/opt/cni/bin";

const FILE: &str = "plugin-directories.json";

/// Directories that are noted: a node has one for each runtime.
const MOST: usize = 16;

/// Bytes of the file: paths have 4 KiB at most.
const LONGEST: u64 = 128 << 10;

fn path(state_dir: &Path) -> PathBuf {
    state_dir.join(FILE)
}

/// The directories that are noted; none where there is no note.
fn noted(state_dir: &Path) -> Vec<PathBuf> {
    let path = path(state_dir);
    let read = read_own(&path, LONGEST).and_then(|text| Ok(serde_json::from_slice(&text)?));
    read.unwrap_or_else(|error: io::Error| {
        if error.kind() != io::ErrorKind::NotFound {
            tracing::warn!(file = %path.display(), %error, "where the plugin is beside {DEFAULT} cannot be read");
        }
        Vec::new()
    })
}

/// A directory, that of the cluster's network if there is one, and all that are noted: each once, in this order.
pub fn all(named: PathBuf, of_cluster: Option<PathBuf>, state_dir: &Path) -> Vec<PathBuf> {
    let mut directories = vec![named];
    for directory in of_cluster.into_iter().chain(noted(state_dir)) {
        if !directories.contains(&directory) {
            directories.push(directory);
        }
    }
    directories
}

/// Notes a directory. Those that are gone are noted no more.
///
/// # Errors
/// The file system's, or there are too many; the note is as it was.
pub fn note(state_dir: &Path, directory: &Path) -> io::Result<()> {
    let directory = std::path::absolute(directory)?;
    let mut directories = noted(state_dir);
    if directory == Path::new(DEFAULT) || directories.contains(&directory) {
        return Ok(());
    }
    directories.retain(|known| known.is_dir());
    if directories.len() >= MOST {
        return Err(io::Error::other(format!("{MOST} plugin directories are noted already")));
    }
    directories.push(directory);
    match DirBuilder::new().mode(0o700).create(state_dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    replace(&path(state_dir), &*serde_json::to_vec(&directories)?, 0o600, Outlives::Power)
}

/// Removes the note, which may be absent.
///
/// # Errors
/// The file system's.
pub fn forget(state_dir: &Path) -> io::Result<()> {
    let path = path(state_dir);
    [unfinished(&path), path].iter().try_for_each(|path| remove(path))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn every_directory_is_noted_once_and_the_default_one_never() {
        let dir = tempfile::tempdir().unwrap();
        let (state, named) = (dir.path().join("state"), PathBuf::from(DEFAULT));
        let [one, two, gone] = ["one", "two", "gone"].map(|name| dir.path().join(name));
        for directory in [&one, &gone] {
            fs::create_dir(directory).unwrap();
        }
        for directory in [&gone, &one, &one, &named] {
            note(&state, directory).unwrap();
        }
        assert_eq!(all(named.clone(), None, &state), [&named, &gone, &one].map(PathBuf::clone));
        fs::remove_dir(&gone).unwrap();
        note(&state, &two).unwrap();
        assert_eq!(all(one.clone(), Some(named.clone()), &state), [&one, &named, &two].map(PathBuf::clone));
        forget(&state).unwrap();
        forget(&state).unwrap();
        assert_eq!(fs::read_dir(&state).unwrap().count(), 0);
        assert_eq!(all(named.clone(), None, &state), [named]);
    }

    #[test]
    fn no_more_are_noted_than_a_node_has_and_a_torn_note_is_begun_anew() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        for number in 0..=MOST {
            let directory = dir.path().join(number.to_string());
            fs::create_dir(&directory).unwrap();
            assert_eq!(note(&state, &directory).is_ok(), number < MOST);
        }
        assert_eq!(noted(&state).len(), MOST);
        fs::write(path(&state), "[\"/a").unwrap();
        note(&state, dir.path()).unwrap();
        assert_eq!(noted(&state), [dir.path()]);
        assert!(note(&dir.path().join("none/state"), &state).is_err(), "no directory of a node");
    }

    #[test]
    fn a_note_that_cannot_be_written_leaves_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(path(dir.path())).unwrap();
        note(dir.path(), Path::new("/elsewhere")).unwrap_err();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
