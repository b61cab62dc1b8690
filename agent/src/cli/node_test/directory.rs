//! Where namespaces are held: a directory of the test's own within the one that is named, one test at a time.
//!
//! The one that is named may hold other namespaces, as `/run/netns` does; nothing in it is touched but the test's own.

use std::fs::{self, DirBuilder, DirEntry, File, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::mount::{MntFlags, umount2};
use nix::unistd::geteuid;

use super::notes;
use super::other_bridge::CONTAINER;
use super::undeleted::Undeleted;

/// Its name.
const NAME: &str = "shunt-test";

/// The names of the namespaces that a test makes there.
const NAMESPACES: [&str; 10] =
    ["one", "two", "limited", "left", "right", CONTAINER, "outside", "kernel", "kernel-left", "kernel-right"];

/// Others' right to write, in a mode.
const BY_ANYBODY: u32 = 0o002;

/// The directory of the other network's leases.
pub(super) const LEASES: &str = "leases";

/// Why there is no place for the namespaces.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DirectoryError {
    #[error("{path}: {source} (it needs root)")]
    Io { path: PathBuf, source: io::Error },
    #[error("another test runs and holds {0}: wait until it ends")]
    Held(PathBuf),
    #[error(
        "{0} is not of a test, and nothing was deleted: move it away, or name another directory with --run-dir"
    )]
    Foreign(PathBuf),
}

/// The directory, held by its lock.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    /// The one that it is in, if that was not there before.
    made: Option<PathBuf>,
    undeleted: Undeleted,
    _lock: Flock<File>,
}

impl Directory {
    /// Makes it and holds it, without what a test that was killed has left in it. The containers that it has left are deleted by the
    /// programs in these directories.
    ///
    /// # Errors
    /// [`DirectoryError`]; where it has anything else in it, nothing is deleted.
    pub(super) fn take(
        within: &Path,
        bin_dirs: &[PathBuf],
        undeleted: Undeleted,
    ) -> Result<Self, DirectoryError> {
        let path = within.join(NAME);
        let failed = |source| DirectoryError::Io { path: path.clone(), source };
        if fs::symlink_metadata(&path).is_ok_and(|found| !found.is_dir()) {
            return Err(DirectoryError::Foreign(path.clone()));
        }
        let made = (!within.exists()).then(|| within.to_path_buf());
        DirBuilder::new().recursive(true).mode(0o755).create(&path).map_err(failed)?;
        let file = File::open(&path).map_err(failed)?;
        if !is_of_caller(&file.metadata().map_err(failed)?) {
            return Err(DirectoryError::Foreign(path.clone()));
        }
        let lock = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => lock,
            Err((_, Errno::EAGAIN)) => return Err(DirectoryError::Held(path.clone())),
            Err((_, errno)) => return Err(failed(errno.into())),
        };
        sweep(&path, bin_dirs, &undeleted)?;
        Ok(Self { path, made, undeleted, _lock: lock })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir(&self.path) {
            let path = self.path.display();
            self.undeleted.tell(format!("the directory {path}: {error}; the next test deletes it"));
        }
        if let Some(made) = &self.made {
            // Somebody else may have put something there meanwhile.
            let _kept = fs::remove_dir(made);
        }
    }
}

/// Deletes what a test that was killed has left within a directory, if one has. Says what is left.
pub(super) fn release(within: &Path, bin_dirs: &[PathBuf]) -> Vec<String> {
    if !within.join(NAME).is_dir() {
        return Vec::new();
    }
    let undeleted = Undeleted::default();
    match Directory::take(within, bin_dirs, undeleted.clone()) {
        Ok(directory) => drop(directory),
        Err(error) => undeleted.tell(error.to_string()),
    }
    undeleted.all()
}

/// What a test that ends at once leaves to the next one.
pub(super) fn left(within: &Path) -> Vec<String> {
    let path = within.join(NAME);
    let mut left: Vec<_> = notes::ids(&path).iter().map(|id| format!("container {id}")).collect();
    left.extend(path.is_dir().then(|| format!("namespaces in {}", path.display())));
    left
}

/// Whether nobody else writes in a directory: programs run by what is noted in it.
fn is_of_caller(found: &Metadata) -> bool {
    found.uid() == geteuid().as_raw() && found.mode() & BY_ANYBODY == 0
}

/// Whether a namespace of this name is one that the next test sweeps.
pub(super) fn is_own(name: &str) -> bool {
    NAMESPACES.contains(&name)
}

/// Deletes what a test that was killed has left: the containers first, whose namespaces are there still. The note of one that cannot be deleted
/// stays.
fn sweep(path: &Path, bin_dirs: &[PathBuf], undeleted: &Undeleted) -> Result<(), DirectoryError> {
    let failed = |source| DirectoryError::Io { path: path.to_path_buf(), source };
    let entries = fs::read_dir(path).and_then(|entries| entries.collect::<io::Result<Vec<_>>>());
    let entries = entries.map_err(failed)?;
    if let Some(foreign) = entries.iter().find(|entry| !is_left(entry)) {
        return Err(DirectoryError::Foreign(foreign.path()));
    }
    notes::release(path, bin_dirs, undeleted);
    let noted = |entry: &&DirEntry| entry.file_name().to_str().is_some_and(notes::is_note);
    for left in entries.iter().filter(|entry| !noted(entry)).map(DirEntry::path) {
        if left.is_dir() {
            fs::remove_dir_all(&left).map_err(failed)?;
            continue;
        }
        // A test that was killed early has mounted nothing.
        let _no_mount = umount2(&left, MntFlags::MNT_DETACH | MntFlags::UMOUNT_NOFOLLOW);
        fs::remove_file(&left).map_err(failed)?;
    }
    Ok(())
}

/// Whether a test makes such a thing by this name. The file of a namespace is empty, mounted or not; a link is not followed.
fn is_left(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let Some(name) = name.to_str() else { return false };
    entry.metadata().is_ok_and(|found| match name {
        LEASES => found.is_dir(),
        _ if notes::is_note(name) || notes::is_unfinished(name) => found.is_file(),
        _ => is_own(name) && found.is_file() && found.len() == 0,
    })
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn take(within: &Path) -> Result<Directory, DirectoryError> {
        Directory::take(within, &[], Undeleted::default())
    }

    #[test]
    fn what_a_killed_test_left_is_swept_and_nothing_beside_the_own_directory_is_touched() {
        let within = tempfile::tempdir().unwrap();
        let within = within.path();
        let own = within.join(NAME);
        fs::create_dir_all(own.join(LEASES).join("pods")).unwrap();
        for name in ["one", "kernel-left"] {
            fs::write(own.join(name), "").unwrap();
        }
        for name in ["one", "pod"] {
            fs::write(within.join(name), name).unwrap();
        }
        let directory = take(within).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        assert!(matches!(take(within), Err(DirectoryError::Held(_))));
        drop(directory);
        assert!(!own.exists() && within.exists());
        assert!(release(within, &[]).is_empty() && left(within).is_empty() && !own.exists());
        assert_eq!(fs::read_to_string(within.join("one")).unwrap(), "one");
        assert_eq!(fs::read_to_string(within.join("pod")).unwrap(), "pod");
    }

    #[test]
    fn what_no_test_makes_is_refused_with_the_cure_and_nothing_is_deleted() {
        let within = tempfile::tempdir().unwrap();
        let (within, elsewhere) = (within.path(), tempfile::tempdir().unwrap());
        let own = within.join(NAME);
        fs::create_dir(&own).unwrap();
        fs::write(own.join("two"), "").unwrap();
        let makes: [fn(&Path, &Path); 4] = [
            |foreign, _| fs::write(foreign.with_file_name("pod"), "").unwrap(),
            |foreign, _| fs::write(foreign, "words").unwrap(),
            |foreign, _| fs::create_dir(foreign).unwrap(),
            |foreign, elsewhere| symlink(elsewhere, foreign).unwrap(),
        ];
        for make in makes {
            make(&own.join("one"), elsewhere.path());
            let refused = take(within).unwrap_err().to_string();
            assert!(refused.contains("--run-dir"), "{refused}");
            assert_eq!(fs::read_dir(&own).unwrap().count(), 2, "{refused}");
            for foreign in [own.join("one"), own.join("pod")] {
                let _ = fs::remove_file(&foreign).or_else(|_| fs::remove_dir(&foreign));
            }
        }
        fs::remove_dir_all(&own).unwrap();
        symlink(elsewhere.path(), &own).unwrap();
        assert!(matches!(take(within), Err(DirectoryError::Foreign(_))));
    }

    #[test]
    fn a_container_of_a_killed_test_that_cannot_be_deleted_stays_noted_and_is_told() {
        let within = tempfile::tempdir().unwrap();
        let (within, own) = (within.path(), within.path().join(NAME));
        fs::create_dir(&own).unwrap();
        let note = r#"{"network": {"name": "pods", "plugins": [{"type": "shunt"}]}, "runtime": {}}"#;
        for (file, text) in
            [("shunt-test-7-one.json", note), (".shunt-test-7-two.json.new", "{"), ("one", "")]
        {
            fs::write(own.join(file), text).unwrap();
        }
        assert_eq!(left(within).len(), 2, "{:?}", left(within));
        let told = release(within, &[]);
        let is_told = told.iter().any(|what| what.starts_with("container shunt-test-7-one "));
        assert!(is_told, "{told:?}");
        assert_eq!(fs::read_dir(&own).unwrap().count(), 1, "its note stays, and all else is swept");
        // Whoever may write there could have root run programs.
        fs::set_permissions(&own, Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(take(within), Err(DirectoryError::Foreign(_))));
    }

    #[test]
    fn a_directory_that_was_not_there_goes_unless_it_is_used_by_others() {
        let root = tempfile::tempdir().unwrap();
        let within = root.path().join("netns");
        drop(take(&within).unwrap());
        assert!(!within.exists());
        let directory = take(&within).unwrap();
        fs::write(within.join("pod"), "").unwrap();
        drop(directory);
        assert!(within.join("pod").exists());
    }

    #[test]
    fn a_directory_that_does_not_go_is_told() {
        let (within, undeleted) = (tempfile::tempdir().unwrap(), Undeleted::default());
        let directory = Directory::take(within.path(), &[], undeleted.clone()).unwrap();
        fs::write(directory.path().join("one"), "").unwrap();
        drop(directory);
        let told = undeleted.all();
        assert!(told.len() == 1 && told[0].contains("/shunt-test: "), "{told:?}");
    }
}
