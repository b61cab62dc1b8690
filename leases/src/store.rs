//! One network's directory: a file for each held address, the last address of each range set, and the lock.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, ErrorKind, Read, Write},
    net::IpAddr,
    os::{
        fd::OwnedFd,
        unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use nix::fcntl::OFlag;

use crate::{
    error::Error,
    files::{Standing, addresses_in, content_in, files_in, standing},
    holders::Holders,
    lock::{Lock, LockError, Sharing},
    place::way_to,
    record::Record,
};

/// The file whose lock keeps plugin processes, ours and host-local's, from each other.
pub(crate) const LOCK: &str = "lock";

/// No address is longer.
const LONGEST_ADDRESS: u64 = 64;

/// How long the lock may be waited for: whoever has it reads and writes a few files.
const PATIENCE: Duration = Duration::from_secs(10);

/// A network's directory with its lock held; the lock goes with this value.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    /// Its path, for messages.
    named: PathBuf,
    /// None where there are no second names.
    holders: Option<Holders>,
    _lock: Lock,
    /// What the paths lead through.
    _places: (Option<OwnedFd>, Option<OwnedFd>),
}

/// Which file it was that recorded a lease: one that is removed and made again is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    inode: u64,
    /// Not `ctime`: a second name changes that.
    written: (i64, i64),
}

/// What is held in a network, and what of it may be one container's.
#[derive(Debug)]
pub struct Held {
    /// Every held address, in no order.
    pub all: Vec<IpAddr>,
    /// Those whose files may name the container; the files tell.
    pub candidates: Vec<IpAddr>,
}

impl Store {
    /// Locks the network's directory, and makes it first where it is missing.
    pub fn open_or_create(data_dir: &Path, network: &str) -> Result<Self, Error> {
        if let Some(store) = Self::open(data_dir, network)? {
            return Ok(store);
        }
        let directory = data_dir.join(network);
        DirBuilder::new().recursive(true).mode(0o755).create(&directory).map_err(Error::at(&directory))?;
        let lock = locked(&directory)?;
        let holders = Some(Holders::of(data_dir, network));
        Ok(Self { holders, ..Self::of(directory.clone(), directory, lock) })
    }

    /// A directory that is locked already.
    pub(crate) fn of(directory: PathBuf, named: PathBuf, lock: Lock) -> Self {
        Self { directory, named, holders: None, _lock: lock, _places: (None, None) }
    }

    /// Keeps open what the paths lead through: the directory's place, and that of the second names.
    pub(crate) fn by_way_of(self, place: OwnedFd, names: Option<OwnedFd>) -> Self {
        let holders = names.as_ref().map(|names| Holders::at(way_to(names)));
        Self { holders, _places: (Some(place), names), ..self }
    }

    /// Locks the network's directory; none when there is no directory, and thus no address held.
    pub fn open(data_dir: &Path, network: &str) -> Result<Option<Self>, Error> {
        let directory = data_dir.join(network);
        match locked(&directory) {
            Ok(lock) => {
                let holders = Some(Holders::of(data_dir, network));
                Ok(Some(Self { holders, ..Self::of(directory.clone(), directory, lock) }))
            }
            Err(LockError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Every held address, in no order.
    pub fn addresses(&self) -> Result<Vec<IpAddr>, Error> {
        addresses_in(&self.directory)
    }

    /// Every held address, and which of them the attachment's container may hold.
    pub fn held(&self, attachment: Record<'_>) -> Result<Held, Error> {
        let files = files_in(&self.directory)?;
        let all: Vec<IpAddr> = files.iter().map(|(address, _)| *address).collect();
        let read = |address| Some(Record::parse(&self.content(address)?).container().to_vec());
        let candidates = match &self.holders {
            Some(holders) => {
                holders.candidates(attachment.container(), &files, |address| self.file_of(address), read)
            }
            None => all.clone(),
        };
        Ok(Held { all, candidates })
    }

    /// The content of an address's file, for [`Record::parse`]; none when it is gone or cannot be read.
    pub fn content(&self, address: IpAddr) -> Option<Vec<u8>> {
        content_in(&self.directory, address)
    }

    /// Records the address as held; false when it already is. The lock keeps others from doing so in between.
    pub fn reserve(&self, address: IpAddr, record: Record<'_>) -> Result<bool, Error> {
        let path = self.file_of(address);
        if fs::symlink_metadata(&path).is_ok() {
            return Ok(false);
        }
        // Written first and named then: a file that a killed process left empty would keep the address for good.
        let draft = self.draft();
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o644)
            .custom_flags(OFlag::O_NOFOLLOW.bits())
            .open(&draft)
            .and_then(|mut file| file.write_all(&record.to_bytes()))
            .and_then(|()| fs::rename(&draft, &path))
            .map_err(|error| {
                self.tidy();
                Error::at(&self.named.join(address.to_string()))(error)
            })?;
        if let Some(holders) = &self.holders {
            holders.note(address, record.container(), &path);
        }
        Ok(true)
    }

    /// Removes what a killed process left half written.
    pub fn tidy(&self) {
        let _ = fs::remove_file(self.draft());
    }

    /// Every held address, after removing all that is left of others: drafts, and second names of what host-local freed.
    pub fn sweep(&self) -> Result<Vec<IpAddr>, Error> {
        self.tidy();
        let files = files_in(&self.directory)?;
        if let Some(holders) = &self.holders {
            holders.sweep(&files);
        }
        Ok(files.into_iter().map(|(address, _)| address).collect())
    }

    fn draft(&self) -> PathBuf {
        self.directory.join("reserving")
    }

    /// Frees the address, which `holder` has; fine when it is free.
    pub fn release(&self, address: IpAddr, holder: Record<'_>) -> Result<(), Error> {
        // The second name goes first: whoever is killed in between leaves a lease as host-local writes it, and no name of
        // an address that nobody asks about any more.
        if let Some(holders) = &self.holders {
            holders.release(address, holder.container());
        }
        match fs::remove_file(self.file_of(address)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Error::at(&self.named.join(address.to_string()))(error))
            }
            _ => Ok(()),
        }
    }

    /// How an attachment stands to an address.
    pub fn standing(&self, address: IpAddr, attachment: Record<'_>) -> Standing {
        standing(&self.directory, address, |record| record.may_be(attachment))
    }

    /// Frees the address if its record says exactly this attachment; answers how it stood. A record that does not tell the interface
    /// may be that of the container's other interfaces, and stays.
    ///
    /// # Errors
    /// The file system's.
    pub fn release_of(&self, address: IpAddr, attachment: Record<'_>) -> Result<Standing, Error> {
        let standing = standing(&self.directory, address, |record| record == attachment);
        if standing == Standing::Held {
            self.release(address, attachment)?;
        }
        Ok(standing)
    }

    /// Which file records the address's lease; none when there is none.
    pub fn identity(&self, address: IpAddr) -> Option<Identity> {
        let found = fs::symlink_metadata(self.file_of(address)).ok()?;
        Some(Identity { inode: found.ino(), written: (found.mtime(), found.mtime_nsec()) })
    }

    /// The address that was last given out of a range set; none when unknown, which costs nothing but the round robin.
    pub fn last_reserved(&self, set: usize) -> Option<IpAddr> {
        let mut text = String::new();
        // A pipe would keep whoever opens it.
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(OFlag::O_NONBLOCK.bits());
        let file = options.open(self.last_reserved_file(set)).ok()?;
        file.take(LONGEST_ADDRESS).read_to_string(&mut text).ok()?;
        text.parse().ok()
    }

    /// Notes the address that was last given out of a range set.
    pub fn note_last_reserved(&self, set: usize, address: IpAddr) -> Result<(), Error> {
        let path = self.last_reserved_file(set);
        let text = address.to_string();
        // A pipe would keep whoever opens it.
        let flags = OFlag::O_NONBLOCK.bits();
        let write = |path: &Path| -> io::Result<()> {
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o644)
                .custom_flags(flags)
                .open(path)?;
            file.write_all(text.as_bytes())?;
            // Not truncated when opened: ext4 starts to write such a file to the disk as soon as it is closed, which
            // takes longer than all the rest of an ADD.
            match file.metadata()?.len() > text.len() as u64 {
                true => file.set_len(text.len() as u64),
                false => Ok(()),
            }
        };
        write(&path).map_err(Error::at(&path))
    }

    fn file_of(&self, address: IpAddr) -> PathBuf {
        self.directory.join(address.to_string())
    }

    fn last_reserved_file(&self, set: usize) -> PathBuf {
        self.directory.join(format!("last_reserved_ip.{set}"))
    }
}

fn locked(directory: &Path) -> Result<Lock, LockError> {
    Lock::acquire(&directory.join(LOCK), Sharing::Exclusive, Instant::now() + PATIENCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_is_reserved_once_and_free_again_after_its_release() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(dir.path(), "net").unwrap();
        let address = ip("fd00::2");
        assert!(store.reserve(address, Record::of("c1", "eth0")).unwrap());
        assert!(!store.reserve(address, Record::of("c2", "eth0")).unwrap());
        assert_eq!(fs::read(dir.path().join("net/fd00::2")).unwrap(), b"c1\r\neth0");
        store.release(address, Record::of("c1", "eth0")).unwrap();
        store.release(address, Record::of("c1", "eth0")).unwrap();
        assert_eq!(store.content(address), None);
    }

    #[test]
    fn a_release_that_gets_no_further_than_the_file_leaves_no_second_name() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(dir.path(), "net").unwrap();
        let (address, record) = (ip("10.0.0.2"), Record::of("c1", "eth0"));
        store.reserve(address, record).unwrap();
        let file = dir.path().join("net/10.0.0.2");
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert!(store.release(address, record).is_err());
        assert_eq!(fs::read_dir(dir.path().join(".holders/net")).unwrap().count(), 0);
    }

    #[test]
    fn only_files_that_are_named_by_an_address_are_held_addresses() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(dir.path(), "net").unwrap();
        store.note_last_reserved(0, ip("10.0.0.9")).unwrap();
        fs::write(dir.path().join("net/10.0.0.2.bak"), "c1\r\neth0").unwrap();
        store.reserve(ip("10.0.0.9"), Record::of("c1", "eth0")).unwrap();
        assert_eq!(store.addresses().unwrap(), [ip("10.0.0.9")]);
    }

    #[test]
    fn the_last_reserved_address_is_kept_for_each_range_set() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(dir.path(), "net").unwrap();
        assert_eq!(store.last_reserved(1), None);
        store.note_last_reserved(1, ip("10.0.0.200")).unwrap();
        store.note_last_reserved(1, ip("10.0.0.9")).unwrap();
        assert_eq!((store.last_reserved(0), store.last_reserved(1)), (None, Some(ip("10.0.0.9"))));
        fs::write(dir.path().join("net/last_reserved_ip.1"), "nonsense").unwrap();
        assert_eq!(store.last_reserved(1), None);
    }

    #[test]
    fn a_record_of_any_length_is_read_whole() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(dir.path(), "net").unwrap();
        let container = "c".repeat(3000);
        store.reserve(ip("10.0.0.2"), Record::of(&container, "eth0")).unwrap();
        let content = store.content(ip("10.0.0.2")).unwrap();
        assert_eq!(Record::parse(&content), Record::of(&container, "eth0"));
    }

    #[test]
    fn a_network_that_was_never_used_is_not_made_by_looking() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Store::open(dir.path(), "net").unwrap().is_none());
        assert_eq!(addresses_in(&dir.path().join("net")).unwrap(), Vec::<IpAddr>::new());
        assert!(!dir.path().join("net").exists());
    }
}
