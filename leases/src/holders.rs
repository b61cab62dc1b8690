//! Who holds which address, without opening a file for each.
//!
//! host-local's files tell whether a container holds an address only to those who read all of them: three system calls for
//! every address of the network, in each ADD and DEL. So every address's file has a second name here, a hard link
//! `<dataDir>/.holders/<network>/<container>/<address>`; a container's are found without those of others.
//!
//! They tell of every lease as long as the last change of both directories, that of the leases and this one, is the same to the
//! nanosecond but for [`APART`], which no clock says: whoever changes both sets these times while it holds the lock, to such that
//! disagree before its first change and to such that agree after its last. Whoever is killed in between leaves the former; and
//! host-local, which knows nothing of that, gives the leases' directory another time with all that it records or frees. Then all
//! files are read, as ever, and get new names. Whoever removes these renames the directory first, which is seen; on a file system
//! without hard links, or whose times have whole seconds, there are none that count.
//!
//! Only whoever rewrites a file in place is not seen: neither we nor host-local do but for a file that says nobody's yet, which
//! is read each time, and a DEL that finds nothing by the names reads every file.

use std::{
    collections::HashSet,
    ffi::{OsStr, OsString},
    fs::{self, DirBuilder},
    io::{self, ErrorKind},
    net::IpAddr,
    os::unix::{
        ffi::OsStrExt,
        fs::{DirBuilderExt, MetadataExt},
    },
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use nix::fcntl::AT_FDCWD;
use nix::sys::stat::{UtimensatFlags, utimensat};
use nix::sys::time::TimeSpec;

/// In place of a container: what says nobody's, or somebody's whose name cannot be a file's. No container's id has it.
const NOBODY: &str = "@";

/// Bytes of a file's name (`NAME_MAX`).
const LONGEST_NAME: usize = 255;

/// How many seconds before the leases' last change that of their second names is said to have been.
const APART: i64 = 1_000_000_000;

/// The second names of one network's addresses. Invariant: its owner holds the network's lock.
#[derive(Debug)]
pub(crate) struct Holders {
    directory: PathBuf,
}

/// Where the second names of every network below `data_dir` are.
pub fn second_names(data_dir: &Path) -> PathBuf {
    data_dir.join(".holders")
}

/// Where a network's second names are.
pub(crate) fn directory(data_dir: &Path, network: &OsStr) -> PathBuf {
    second_names(data_dir).join(network)
}

impl Holders {
    /// The second names of a network of this name.
    pub(crate) fn of(data_dir: &Path, network: &str) -> Self {
        Self::at(directory(data_dir, OsStr::new(network)))
    }

    /// The second names in this directory.
    pub(crate) fn at(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Whether they tell of every lease in this directory.
    pub(crate) fn tell_of(&self, leases: &Path) -> bool {
        let [ours, theirs] = [&self.directory, leases].map(|directory| last_change(directory).ok());
        // Whole seconds are those of a file system that counts no others, where a later change may say the same.
        ours.is_some_and(|time| time.tv_nsec() != 0) && ours == theirs.map(before)
    }

    /// Says that they do not, as the first of all changes.
    ///
    /// # Errors
    /// The file system's.
    pub(crate) fn unsign(&self) -> io::Result<()> {
        Ok(set_last_change(&self.directory, TimeSpec::UTIME_NOW)?)
    }

    /// Says that they do, as the last of all changes.
    ///
    /// # Errors
    /// The file system's.
    pub(crate) fn sign(&self, leases: &Path) -> io::Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = TimeSpec::from(now);
        set_last_change(leases, now)?;
        Ok(set_last_change(&self.directory, before(now))?)
    }

    /// The addresses that the container may hold, of names that tell of every lease: its own, and those whose files have to be read.
    ///
    /// # Errors
    /// The file system's.
    pub(crate) fn candidates(&self, container: &[u8]) -> io::Result<Vec<IpAddr>> {
        let mut candidates = self.addresses(OsStr::new(NOBODY))?;
        if let Some(own) = place(container).filter(|own| *own != NOBODY) {
            candidates.extend(self.addresses(own)?);
        }
        Ok(candidates)
    }

    /// Gives each of these files, of which is known whose they are, its second name, and none to others. What is there stays: where
    /// host-local writes by turns with us, few have changed since.
    ///
    /// # Errors
    /// The file system's, which may have no hard links.
    pub(crate) fn renew<'a>(
        &self,
        held: impl Iterator<Item = (IpAddr, &'a [u8])>,
        file: impl Fn(IpAddr) -> PathBuf,
    ) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o755).create(&self.directory)?;
        let mut left = self.names();
        for (address, container) in held {
            let whose = place(container).unwrap_or(OsStr::new(NOBODY));
            if !left.remove(&(whose.to_owned(), address)) {
                self.note(address, container, &file(address))?;
            }
        }
        for (whose, address) in left {
            self.forget(&whose, &[address]);
        }
        Ok(())
    }

    /// Gives the file of an address its second name.
    ///
    /// # Errors
    /// The file system's; also where somebody has removed all names meanwhile.
    pub(crate) fn note(&self, address: IpAddr, container: &[u8], file: &Path) -> io::Result<()> {
        let directory = self.directory.join(place(container).unwrap_or(OsStr::new(NOBODY)));
        match DirBuilder::new().mode(0o755).create(&directory) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        fs::hard_link(file, directory.join(address.to_string()))
    }

    /// Removes the second name of an address that is free again; false where there was none.
    pub(crate) fn release(&self, address: IpAddr, container: &[u8]) -> bool {
        let places = [place(container), Some(OsStr::new(NOBODY))];
        places.into_iter().flatten().any(|whose| self.forget(whose, &[address]))
    }

    /// Every name: the container, and the address. Removes those beside each other that releases before this one have left,
    /// `<address>@<container>`.
    fn names(&self) -> HashSet<(OsString, IpAddr)> {
        let mut names = HashSet::new();
        for entry in fs::read_dir(&self.directory).into_iter().flatten().map_while(Result::ok) {
            let whose = entry.file_name();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let addresses = self.addresses(&whose).unwrap_or_default();
                if addresses.is_empty() {
                    let _others = fs::remove_dir(entry.path());
                }
                names.extend(addresses.into_iter().map(|address| (whose.clone(), address)));
            } else if whose.as_bytes().contains(&b'@') {
                let _gone = fs::remove_file(entry.path());
            }
        }
        names
    }

    /// The addresses in the directory of a container; none where it has no directory.
    fn addresses(&self, whose: &OsStr) -> io::Result<Vec<IpAddr>> {
        let entries = match fs::read_dir(self.directory.join(whose)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let names = entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
        Ok(names.iter().filter_map(|name| name.to_str()?.parse().ok()).collect())
    }

    /// Removes these from it, and it with the last one; whether all of them were there.
    fn forget(&self, whose: &OsStr, addresses: &[IpAddr]) -> bool {
        let directory = self.directory.join(whose);
        let removed = addresses.iter().filter(|it| fs::remove_file(directory.join(it.to_string())).is_ok());
        let were_there = removed.count() == addresses.len();
        let _others = fs::remove_dir(directory);
        were_there
    }
}

/// The name of a container's directory; none where it cannot be one's.
fn place(container: &[u8]) -> Option<&OsStr> {
    let is_name = !container.is_empty()
        && container.len() <= LONGEST_NAME
        && !container.iter().any(|byte| matches!(byte, b'/' | 0))
        && container != b"."
        && container != b"..";
    is_name.then(|| OsStr::from_bytes(container))
}

/// The time of the second names for one of the leases.
fn before(time: TimeSpec) -> TimeSpec {
    TimeSpec::new(time.tv_sec() - APART, time.tv_nsec())
}

fn set_last_change(directory: &Path, time: TimeSpec) -> nix::Result<()> {
    utimensat(AT_FDCWD, directory, &TimeSpec::UTIME_OMIT, &time, UtimensatFlags::FollowSymlink)
}

fn last_change(directory: &Path) -> io::Result<TimeSpec> {
    let found = fs::metadata(directory)?;
    Ok(TimeSpec::new(found.mtime(), found.mtime_nsec()))
}

#[cfg(test)]
#[path = "holders_tests.rs"]
mod tests;
