//! Files that are there whole or not at all.
//!
//! In: a path, what is to be in the file, its mode, and what it has to outlive. Out: the file, by a rename over what was there. A reader finds
//! the earlier file or the new one. A failure leaves the earlier file and nothing beside it; only a kill leaves the [`unfinished`] one, which
//! the next write removes. Two writers of one file are kept apart by the caller.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// What comes before and behind a file's name until the file is whole.
const HIDDEN: &str = ".";
const END: &str = ".new";

/// Bytes of a name that leave room for that of the unfinished file (`NAME_MAX` is 255).
pub const LONGEST_NAME: usize = 255 - HIDDEN.len() - END.len();

/// What a file outlives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlives {
    /// The process. After a loss of power it may be gone, or empty.
    Process,
    /// Also a loss of power: the disk is waited for, with the file's contents and its name.
    Power,
}

/// Where a file is written before it has its name: beside it, hidden, and with an end that nobody looks for.
pub fn unfinished(path: &Path) -> PathBuf {
    let mut name = OsString::from(HIDDEN);
    name.push(path.file_name().unwrap_or_default());
    name.push(END);
    path.with_file_name(name)
}

/// Writes a file in one step. It has exactly this mode, whatever the process's mask says.
///
/// # Errors
/// The file system's; the file is as it was. Only where the disk does not take the directory ([`Outlives::Power`]) it is the new one.
pub fn replace(path: &Path, content: impl Read, mode: u32, outlives: Outlives) -> io::Result<()> {
    let unfinished = unfinished(path);
    remove(&unfinished)?;
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&unfinished)?;
    let written = fill(file, content, mode, outlives).and_then(|()| fs::rename(&unfinished, path));
    if written.is_err() {
        let _absent = fs::remove_file(&unfinished);
    }
    written?;
    if outlives == Outlives::Power { File::open(directory_of(path))?.sync_all() } else { Ok(()) }
}

/// Removes a file, which may be gone.
///
/// # Errors
/// The file system's.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn fill(mut file: File, mut content: impl Read, mode: u32, outlives: Outlives) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(mode))?;
    io::copy(&mut content, &mut file)?;
    if outlives == Outlives::Power { file.sync_all() } else { Ok(()) }
}

fn directory_of(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn names(directory: &Path) -> Vec<OsString> {
        let mut names: Vec<_> =
            fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_has_its_mode_whatever_the_mask_says_and_nothing_is_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        for (mode, content, outlives) in
            [(0o666, "one", Outlives::Process), (0o600, "another", Outlives::Power)]
        {
            replace(&path, content.as_bytes(), mode, outlives).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode);
        }
        assert_eq!(names(dir.path()), ["file"]);
    }

    #[test]
    fn what_cannot_be_written_leaves_what_was_there_and_nothing_else() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("broken"))
            }
        }
        let dir = tempfile::tempdir().unwrap();
        let [file, directory] = ["file", "directory"].map(|name| dir.path().join(name));
        fs::write(&file, "earlier").unwrap();
        fs::create_dir(&directory).unwrap();
        replace(&file, Broken, 0o600, Outlives::Process).unwrap_err();
        replace(&directory, &b"new"[..], 0o600, Outlives::Process).unwrap_err();
        assert_eq!(fs::read_to_string(&file).unwrap(), "earlier");
        assert_eq!(names(dir.path()), ["directory", "file"]);
    }

    #[test]
    fn what_stands_under_the_unfinished_name_is_removed_and_not_written_to() {
        let dir = tempfile::tempdir().unwrap();
        let [file, others] = ["file", "others"].map(|name| dir.path().join(name));
        fs::write(&others, "others").unwrap();
        symlink(&others, unfinished(&file)).unwrap();
        replace(&file, &b"new"[..], 0o600, Outlives::Process).unwrap();
        assert_eq!(fs::read_to_string(&others).unwrap(), "others");
        assert_eq!(names(dir.path()), ["file", "others"]);
        remove(&file).unwrap();
        remove(&file).unwrap();
        assert_eq!(names(dir.path()), ["others"]);
    }

    #[test]
    fn a_name_of_the_longest_has_room_for_that_of_the_unfinished_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("n".repeat(LONGEST_NAME));
        replace(&path, &b"new"[..], 0o600, Outlives::Process).unwrap();
        assert_eq!(unfinished(Path::new("/a/b")), Path::new("/a/.b.new"));
        assert_eq!(directory_of(Path::new("b")), Path::new("."));
    }
}
