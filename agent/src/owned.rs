//! What shunt makes in a directory, by name and kind, and the removal of exactly that.
//!
//! In: a directory, which may be anybody's, and what shunt makes in one of its kind. Out: what was found, what stays, and what could not be
//! removed. An entry of another name or kind stays. So does a directory on which something is mounted, with all that is in it. A directory
//! goes by `rmdir` alone, which removes no entry that was not looked at.

use std::fs::{self, File, FileType};
use std::io;
use std::path::{Path, PathBuf};

use crate::fdinfo;

/// An entry that shunt makes in a directory.
pub(crate) struct Own {
    is_name: fn(&str) -> bool,
    kind: Kind,
}

enum Kind {
    /// A regular file, or a pin.
    File,
    /// A directory, and what shunt makes in it.
    Directory(&'static [Own]),
}

impl Own {
    /// Files with such names.
    pub(crate) const fn file(is_name: fn(&str) -> bool) -> Self {
        Self { is_name, kind: Kind::File }
    }

    /// Directories with such names, and what is in them.
    pub(crate) const fn directory(is_name: fn(&str) -> bool, inside: &'static [Self]) -> Self {
        Self { is_name, kind: Kind::Directory(inside) }
    }

    fn is(&self, path: &Path, found: FileType) -> bool {
        let is_kind = match self.kind {
            Kind::File => found.is_file(),
            Kind::Directory(_) => found.is_dir(),
        };
        is_kind && path.file_name().and_then(|name| name.to_str()).is_some_and(self.is_name)
    }
}

/// What became of a directory's entries.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Swept {
    /// How many of shunt's there were; a directory that stays is none.
    pub(crate) own: usize,
    /// Those that stay: they are none of shunt's, or something is mounted on them.
    pub(crate) foreign: Vec<PathBuf>,
    /// Those that could not be removed, each with the reason.
    pub(crate) failed: Vec<String>,
}

impl Swept {
    /// # Errors
    /// What stays and why.
    pub(crate) fn all_gone(self) -> io::Result<()> {
        let Self { foreign, failed, .. } = self;
        let foreign = foreign.iter().map(|path| format!("{}: not shunt's, and not removed", path.display()));
        let stay: Vec<_> = failed.into_iter().chain(foreign).collect();
        if stay.is_empty() { Ok(()) } else { Err(io::Error::other(stay.join("; "))) }
    }

    fn stay(&self) -> usize {
        self.foreign.len() + self.failed.len()
    }

    fn note(&mut self, removed: io::Result<()>, path: &Path) {
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                self.failed.push(format!("{}: {error}", path.display()));
            }
            _ => {}
        }
    }
}

/// Removes what shunt makes in a directory. The directory itself stays; it may be absent.
pub(crate) fn sweep(directory: &Path, own: &[Own]) -> Swept {
    let mut swept = Swept::default();
    sweep_into(directory, own, &mut swept);
    swept
}

/// Removes a directory of shunt's with what shunt makes in it; a link in its place is another's. It may be absent.
pub(crate) fn remove(directory: &Path, inside: &[Own]) -> Swept {
    let mut swept = Swept::default();
    match fs::symlink_metadata(directory) {
        Ok(found) if found.is_dir() => remove_into(directory, inside, &mut swept),
        Ok(_) => swept.foreign.push(directory.to_path_buf()),
        Err(error) => swept.note(Err(error), directory),
    }
    swept
}

fn remove_into(directory: &Path, inside: &[Own], swept: &mut Swept) {
    if is_mounted(directory) {
        return swept.foreign.push(directory.to_path_buf());
    }
    let before = swept.stay();
    sweep_into(directory, inside, swept);
    if swept.stay() == before {
        swept.own += 1;
        swept.note(fs::remove_dir(directory), directory);
    }
}

fn sweep_into(directory: &Path, own: &[Own], swept: &mut Swept) {
    let entries = match entries(directory) {
        Ok(entries) => entries,
        Err(error) => return swept.note(Err(error), directory),
    };
    for (path, found) in entries {
        match kind_of(&path, found, own) {
            None => swept.foreign.push(path),
            Some(Kind::File) => {
                swept.own += 1;
                swept.note(fs::remove_file(&path), &path);
            }
            Some(Kind::Directory(inside)) => remove_into(&path, inside, swept),
        }
    }
}

/// Whether [`sweep`] would find anything of shunt's in a directory, which may be absent.
pub(crate) fn is_in(directory: &Path, own: &[Own]) -> bool {
    let is_own = |(path, found): &(PathBuf, FileType)| match kind_of(path, *found, own) {
        None => false,
        Some(Kind::File) => true,
        Some(Kind::Directory(inside)) => !is_mounted(path) && (is_in(path, inside) || is_empty(path)),
    };
    entries(directory).unwrap_or_default().iter().any(is_own)
}

fn is_empty(directory: &Path) -> bool {
    entries(directory).is_ok_and(|entries| entries.is_empty())
}

fn kind_of<'a>(path: &Path, found: FileType, own: &'a [Own]) -> Option<&'a Kind> {
    own.iter().find(|own| own.is(path, found)).map(|own| &own.kind)
}

/// Whether a directory is of another mount than its parent. What cannot be asked counts as mounted: it stays.
pub(crate) fn is_mounted(directory: &Path) -> bool {
    let mounts = (mount_of(directory), mount_of(&directory.join("..")));
    !matches!(mounts, (Ok(own), Ok(parent)) if own == parent)
}

/// The number of the mount that a directory is of. A device number would not do: `mount --bind` mounts a part of the same file system.
fn mount_of(directory: &Path) -> io::Result<u64> {
    fdinfo::own(File::open(directory)?, "mnt_id")
}

/// Paths and kinds; a link is not followed.
fn entries(directory: &Path) -> io::Result<Vec<(PathBuf, FileType)>> {
    fs::read_dir(directory)?
        .map(|entry| entry.and_then(|entry| Ok((entry.path(), entry.file_type()?))))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const INSIDE: &[Own] = &[Own::file(|name| name.ends_with(".json"))];

    const OWN: &[Own] = &[Own::file(|name| name == "lock"), Own::directory(|name| name == "records", INSIDE)];

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_is_shunts_goes_and_every_other_name_and_kind_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for directory in ["records", "records/d.json", "others"] {
            fs::create_dir(path(directory)).unwrap();
        }
        for file in ["lock", "records/a.json", "records/note", "others/lock", "wanted"] {
            fs::write(path(file), "").unwrap();
        }
        symlink(path("wanted"), path("records/l.json")).unwrap();
        assert!(is_in(dir.path(), OWN));
        let swept = sweep(dir.path(), OWN);
        assert_eq!((swept.own, swept.foreign.len(), swept.failed.len()), (2, 5, 0), "{swept:?}");
        assert!(!is_in(dir.path(), OWN), "what stays is none of shunt's");
        assert_eq!(names(dir.path()), ["others", "records", "wanted"]);
        assert_eq!(names(&path("records")), ["d.json", "l.json", "note"]);
        assert_eq!(names(&path("others")), ["lock"], "a directory of others is not entered");
    }

    #[test]
    fn a_directory_of_shunts_alone_is_empty_afterwards_and_none_is_no_fault() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("records")).unwrap();
        fs::write(dir.path().join("records/a.json"), "").unwrap();
        assert_eq!(sweep(dir.path(), OWN), Swept { own: 2, ..Swept::default() });
        assert_eq!(names(dir.path()), Vec::<String>::new());
        assert!(!is_in(dir.path(), OWN) && !is_mounted(dir.path()));
        let none = dir.path().join("none");
        assert_eq!(sweep(&none, OWN), Swept::default());
        assert!(!is_in(&none, OWN));
    }

    #[test]
    fn a_directory_of_shunts_goes_unless_anothers_is_in_it_or_in_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let [records, link] = ["records", "link"].map(|name| dir.path().join(name));
        remove(&records, INSIDE).all_gone().unwrap();
        fs::create_dir(&records).unwrap();
        for file in ["a.json", "note"] {
            fs::write(records.join(file), "").unwrap();
        }
        symlink(&records, &link).unwrap();
        for (directory, stays) in [(&link, &link), (&records, &records.join("note"))] {
            let why = remove(directory, INSIDE).all_gone().unwrap_err().to_string();
            assert_eq!(why, format!("{}: not shunt's, and not removed", stays.display()));
        }
        assert_eq!(names(&records), ["note"]);
        fs::remove_file(records.join("note")).unwrap();
        remove(&records, INSIDE).all_gone().unwrap();
        assert_eq!(names(dir.path()), ["link"]);
    }

    #[test]
    fn a_mount_is_told_from_a_directory() {
        assert!(is_mounted(Path::new("/proc")));
        assert!(!is_mounted(Path::new("/proc/sys/kernel/random")));
    }
}
