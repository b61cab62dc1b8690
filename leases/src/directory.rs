//! A network's directory, by a path that another process has named some time ago.

use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Instant;

use nix::errno::Errno;
use nix::sys::stat::{Mode, fstat, mkdirat};

use crate::error::Error;
use crate::files::{Standing, standing};
use crate::holders;
use crate::lock::{Lock, Sharing};
use crate::place::{open, path_of, way_to};
use crate::record::Record;
use crate::stamp::Stamp;
use crate::store::{LOCK, Store};

/// A network's directory, held open: whatever becomes of its path, this is the one that was found there.
#[derive(Debug)]
pub struct Directory {
    /// Open as a place only (`O_PATH`).
    place: OwnedFd,
    /// Its path, for messages.
    named: PathBuf,
}

impl Directory {
    /// Opens `<data_dir>/<network>`, and follows no symbolic link on the way; none where there is no directory, and thus
    /// no address held.
    ///
    /// # Errors
    /// [`Error::Path`], [`Error::Network`]; a link, or no directory, in the way.
    pub fn open(data_dir: &Path, network: &str) -> Result<Option<Self>, Error> {
        let named = path_of(data_dir, network)?;
        match open(&named) {
            Ok(place) => Ok(Some(Self { place, named })),
            Err(Errno::ENOENT) => Ok(None),
            Err(errno) => Err(Error::at(&named)(errno.into())),
        }
    }

    /// The same, and makes the directory where only `data_dir` is there.
    ///
    /// # Errors
    /// As [`Directory::open`], and the file system's.
    pub fn open_or_create(data_dir: &Path, network: &str) -> Result<Self, Error> {
        if let Some(found) = Self::open(data_dir, network)? {
            return Ok(found);
        }
        let named = path_of(data_dir, network)?;
        let made = open(data_dir).and_then(|above| {
            match mkdirat(&above, network, Mode::from_bits_truncate(0o755)) {
                Err(Errno::EEXIST) => Ok(()),
                made => made,
            }
        });
        made.and_then(|()| open(&named))
            .map(|place| Self { place, named: named.clone() })
            .map_err(|errno| Error::at(&named)(errno.into()))
    }

    /// How an attachment stands to an address, without the lock: good for a first look.
    pub fn standing(&self, address: IpAddr, attachment: Record<'_>) -> Standing {
        standing(&self.way(), address, |record| record.may_be(attachment))
    }

    /// What tells whether any lease has come, gone or been replaced since.
    ///
    /// # Errors
    /// The file system's.
    pub fn stamp(&self) -> Result<Stamp, Error> {
        let found = fstat(&self.place).map_err(|errno| Error::at(&self.named)(errno.into()))?;
        Ok(Stamp::of(&found))
    }

    /// Takes the lock, waiting until `deadline` at most.
    ///
    /// # Errors
    /// [`Error::Lock`].
    pub fn lock(self, deadline: Instant) -> Result<Store, Error> {
        let lock = Lock::acquire(&self.way().join(LOCK), Sharing::Exclusive, deadline)
            .map_err(|error| error.named(self.named.join(LOCK)))?;
        let (way, names) = (way_to(&self.place), self.names());
        Ok(Store::of(way, self.named, lock).by_way_of(self.place, names))
    }

    /// Where the addresses' second names are, if a plugin has made any.
    fn names(&self) -> Option<OwnedFd> {
        let (data_dir, network) = (self.named.parent()?, self.named.file_name()?);
        open(&holders::directory(data_dir, network)).ok()
    }

    fn way(&self) -> PathBuf {
        way_to(&self.place)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::time::Duration;

    use super::*;
    use crate::lock::LockError;

    fn ip() -> IpAddr {
        "10.0.0.2".parse().unwrap()
    }

    #[test]
    fn a_lease_is_freed_for_its_holder_only() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Directory::open(dir.path(), "net").unwrap().is_none());
        let store = Store::open_or_create(dir.path(), "net").unwrap();
        let (mine, other) = (Record::of("c1", "eth0"), Record::of("c2", "eth0"));
        store.reserve(ip(), mine).unwrap();
        drop(store);
        let open = || Directory::open(dir.path(), "net").unwrap().unwrap();
        assert_eq!(open().standing(ip(), mine), Standing::Held);
        assert_eq!(open().standing(ip(), other), Standing::Taken("c1/eth0".to_owned()));
        let store = open().lock(Instant::now()).unwrap();
        assert_eq!(store.release_of(ip(), other).unwrap(), Standing::Taken("c1/eth0".to_owned()));
        assert!(dir.path().join("net/10.0.0.2").exists());
        assert_eq!(store.release_of(ip(), mine).unwrap(), Standing::Held);
        assert_eq!(store.release_of(ip(), mine).unwrap(), Standing::Free);
        assert!(!dir.path().join("net/10.0.0.2").exists());
        // An old record may be that of another interface of the container.
        fs::write(dir.path().join("net/10.0.0.2"), "c1").unwrap();
        assert_eq!(store.standing(ip(), mine), Standing::Held);
        assert_eq!(store.release_of(ip(), mine).unwrap(), Standing::Taken("c1".to_owned()));
    }

    #[test]
    fn no_symbolic_link_is_followed_and_no_path_leads_out() {
        let dir = tempfile::tempdir().unwrap();
        drop(Store::open_or_create(dir.path(), "net").unwrap());
        symlink(dir.path().join("net"), dir.path().join("linked")).unwrap();
        symlink(dir.path(), dir.path().join("data")).unwrap();
        assert!(Directory::open(dir.path(), "linked").is_err());
        assert!(Directory::open(&dir.path().join("data"), "net").is_err());
        for path in ["../..", "relative", "", "/a/../b"] {
            assert!(matches!(Directory::open(Path::new(path), "net"), Err(Error::Path(_))), "{path}");
        }
        for network in ["..", ".", "", "a/b", "/etc", "a/"] {
            assert!(matches!(Directory::open(dir.path(), network), Err(Error::Network(_))), "{network}");
        }
    }

    #[test]
    fn a_file_that_is_a_link_or_a_pipe_is_neither_followed_nor_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        drop(Store::open_or_create(dir.path(), "net").unwrap());
        let secret = dir.path().join("elsewhere");
        fs::write(&secret, "c1\r\neth0").unwrap();
        symlink(&secret, dir.path().join("net/10.0.0.2")).unwrap();
        nix::unistd::mkfifo(&dir.path().join("net/10.0.0.3"), Mode::S_IRWXU).unwrap();
        let directory = Directory::open(dir.path(), "net").unwrap().unwrap();
        for address in ["10.0.0.2", "10.0.0.3"] {
            let standing = directory.standing(address.parse().unwrap(), Record::of("c1", "eth0"));
            assert!(matches!(standing, Standing::Taken(_)), "{address}: {standing:?}");
        }
    }

    #[test]
    fn a_lock_that_is_kept_is_not_waited_for_longer_than_asked() {
        let dir = tempfile::tempdir().unwrap();
        let _held = Store::open_or_create(dir.path(), "net").unwrap();
        let open = || Directory::open(dir.path(), "net").unwrap().unwrap();
        let deadline = Instant::now() + Duration::from_millis(20);
        let error = open().lock(deadline).unwrap_err();
        assert!(matches!(error, Error::Lock(LockError::Held { .. })));
        assert!(error.to_string().contains(&dir.path().join("net/lock").display().to_string()), "{error}");
        assert!(Instant::now() >= deadline);
    }

    #[test]
    fn a_lease_that_is_freed_leaves_no_second_name() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(dir.path(), "net").unwrap();
        store.candidates(Record::of("c1", "eth0")).unwrap();
        store.reserve(ip(), Record::of("c1", "eth0")).unwrap();
        drop(store);
        let names = || fs::read_dir(dir.path().join(".holders/net")).unwrap().count();
        assert_eq!(names(), 1);
        let store = Directory::open(dir.path(), "net").unwrap().unwrap().lock(Instant::now()).unwrap();
        assert_eq!(store.release_of(ip(), Record::of("c1", "eth0")).unwrap(), Standing::Held);
        assert_eq!(names(), 0);
    }

    #[test]
    fn a_networks_directory_that_was_removed_is_made_again_below_its_data_dir() {
        let dir = tempfile::tempdir().unwrap();
        let made = Directory::open_or_create(dir.path(), "net").unwrap();
        let store = made.lock(Instant::now()).unwrap();
        assert!(store.reserve(ip(), Record::of("c1", "eth0")).unwrap());
        assert_eq!(fs::read(dir.path().join("net/10.0.0.2")).unwrap(), b"c1\r\neth0");
        let identity = store.identity(ip()).unwrap();
        store.release(ip(), Record::of("c1", "eth0")).unwrap();
        store.reserve(ip(), Record::of("c1", "eth0")).unwrap();
        assert_ne!(store.identity(ip()).unwrap(), identity, "another lease of the same words");
        assert!(Directory::open_or_create(&dir.path().join("nowhere"), "net").is_err());
    }
}
