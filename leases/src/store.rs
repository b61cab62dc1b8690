//! One network's directory: a file for each held address, the last address of each range set, and the lock.

use std::{
    cell::Cell,
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
    files::{Standing, addresses_in, content_in, standing},
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
    /// Whether these tell of every lease, and will once all is done.
    are_told: Cell<bool>,
    has_changed: Cell<bool>,
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

impl Store {
    /// Locks the network's directory, and makes it first where it is missing.
    pub fn open_or_create(data_dir: &Path, network: &str) -> Result<Self, Error> {
        if let Some(store) = Self::open(data_dir, network)? {
            return Ok(store);
        }
        let directory = data_dir.join(network);
        DirBuilder::new().recursive(true).mode(0o755).create(&directory).map_err(Error::at(&directory))?;
        let lock = locked(&directory)?;
        Ok(Self::of(directory.clone(), directory, lock).with(Holders::of(data_dir, network)))
    }

    /// A directory that is locked already.
    pub(crate) fn of(directory: PathBuf, named: PathBuf, lock: Lock) -> Self {
        let (are_told, has_changed) = (Cell::new(false), Cell::new(false));
        Self { directory, named, holders: None, are_told, has_changed, _lock: lock, _places: (None, None) }
    }

    fn with(mut self, holders: Holders) -> Self {
        self.are_told.set(holders.tell_of(&self.directory));
        self.holders = Some(holders);
        self
    }

    /// Keeps open what the paths lead through: the directory's place, and that of the second names.
    pub(crate) fn by_way_of(mut self, place: OwnedFd, names: Option<OwnedFd>) -> Self {
        if let Some(names) = &names {
            self = self.with(Holders::at(way_to(names)));
        }
        self._places = (Some(place), names);
        self
    }

    /// Locks the network's directory; none when there is no directory, and thus no address held.
    pub fn open(data_dir: &Path, network: &str) -> Result<Option<Self>, Error> {
        let directory = data_dir.join(network);
        match locked(&directory) {
            Ok(lock) => {
                let store = Self::of(directory.clone(), directory, lock);
                Ok(Some(store.with(Holders::of(data_dir, network))))
            }
            Err(LockError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Every held address, in no order.
    pub fn addresses(&self) -> Result<Vec<IpAddr>, Error> {
        addresses_in(&self.directory)
    }

    /// The addresses that the attachment's container may hold; their files tell.
    ///
    /// # Errors
    /// The file system's.
    pub fn candidates(&self, attachment: Record<'_>) -> Result<Vec<IpAddr>, Error> {
        let Some(holders) = &self.holders else { return self.addresses() };
        if !self.are_told.get() {
            self.renew_names(holders)?;
        }
        if self.are_told.get() {
            match holders.candidates(attachment.container()) {
                Ok(candidates) => return Ok(candidates),
                Err(_) => self.are_told.set(false),
            }
        }
        self.addresses()
    }

    /// Gives every lease its second name; what cannot be read now is nobody's yet. A directory is no lease, and has none.
    fn renew_names(&self, holders: &Holders) -> Result<(), Error> {
        let read = |address| {
            let is_lease = fs::symlink_metadata(self.file_of(address)).is_ok_and(|found| !found.is_dir());
            is_lease.then(|| (address, self.content(address).unwrap_or_default()))
        };
        let held: Vec<_> = self.addresses()?.into_iter().filter_map(read).collect();
        let held = held.iter().map(|(address, content)| (*address, Record::parse(content).container()));
        self.begin_change();
        self.are_told.set(holders.renew(held, |address| self.file_of(address)).is_ok());
        Ok(())
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
        self.begin_change();
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
        if let Some(holders) = &self.holders
            && holders.note(address, record.container(), &path).is_err()
        {
            self.are_told.set(false);
        }
        Ok(true)
    }

    /// Removes what a killed process left half written.
    pub fn tidy(&self) {
        let draft = self.draft();
        if fs::symlink_metadata(&draft).is_ok() {
            self.begin_change();
            let _gone = fs::remove_file(draft);
        }
    }

    /// Every held address, after removing all that is left of others: drafts, and second names of what host-local freed.
    ///
    /// # Errors
    /// The file system's.
    pub fn sweep(&self) -> Result<Vec<IpAddr>, Error> {
        self.tidy();
        if let Some(holders) = self.holders.as_ref().filter(|_| !self.are_told.get()) {
            self.renew_names(holders)?;
        }
        self.addresses()
    }

    fn draft(&self) -> PathBuf {
        self.directory.join("reserving")
    }

    /// Frees the address, which `holder` has; fine when it is free.
    pub fn release(&self, address: IpAddr, holder: Record<'_>) -> Result<(), Error> {
        // The second name goes first: no name is left of an address that nobody asks about any more.
        self.release_name(address, holder);
        match fs::remove_file(self.file_of(address)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                self.are_told.set(false);
                Err(Error::at(&self.named.join(address.to_string()))(error))
            }
            _ => Ok(()),
        }
    }

    fn release_name(&self, address: IpAddr, holder: Record<'_>) {
        self.begin_change();
        if let Some(holders) = &self.holders
            && !holders.release(address, holder.container())
        {
            self.are_told.set(false);
        }
    }

    /// Comes before every change: whoever is killed before all of it is done leaves names that tell of nothing.
    fn begin_change(&self) {
        let is_first = !self.has_changed.replace(true);
        if let Some(holders) = &self.holders
            && is_first
            && self.are_told.get()
            && holders.unsign().is_err()
        {
            self.are_told.set(false);
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

impl Drop for Store {
    /// While the lock is held: whoever comes next knows whether all second names are there.
    fn drop(&mut self) {
        if let Some(holders) = &self.holders
            && self.are_told.get()
            && self.has_changed.get()
        {
            // Where it cannot be said, all files are read.
            let _unsaid = holders.sign(&self.directory);
        }
    }
}

fn locked(directory: &Path) -> Result<Lock, LockError> {
    Lock::acquire(&directory.join(LOCK), Sharing::Exclusive, Instant::now() + PATIENCE)
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
