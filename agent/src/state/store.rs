//! The state directory: `attachments/`, `quarantine/` and the lock against a second agent.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::mem;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use shunt_agent_api::{AttachmentKey, BridgePort};

use super::name;
use super::record::{FORMAT, Record, RecordError};
use crate::failpoints::{self, Failpoint};

/// The suffix of a temporary file.
pub(crate) const UNFINISHED: &str = ".unfinished";

/// Where the kernel tells which boot this is.
pub(super) const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Why the state directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another agent has it.
    #[error("another agent uses the state directory {0}")]
    Taken(PathBuf),
    /// The file system refused.
    #[error("cannot {verb} {path}: {source}")]
    Io {
        /// What was tried.
        verb: &'static str,
        /// On what.
        path: PathBuf,
        /// The file system's word.
        source: io::Error,
    },
    /// The record cannot be written down.
    #[error(transparent)]
    Record(#[from] RecordError),
}

pub(super) fn failed<'a>(verb: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> StoreError + 'a {
    move |source| StoreError::Io { verb, path: path.to_path_buf(), source }
}

/// An unreadable file.
#[derive(Debug)]
pub struct Unreadable {
    /// Where it is now: in quarantine, or in its place where it may become readable.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: RecordError,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the state file {}: {}", self.path.display(), self.reason)
    }
}

/// The content of the state directory at the start.
#[derive(Debug, Default)]
pub struct Loaded {
    /// Attachments of this boot.
    pub records: Vec<Record>,
    /// Attachments of an earlier boot, which no longer exist in the kernel. The caller removes their files.
    pub outlived: Vec<BridgePort>,
    /// Files that are no records, or none that this agent can read.
    pub unreadable: Vec<Unreadable>,
}

/// The state directory, locked against other agents.
#[derive(Debug)]
pub struct Store {
    attachments: PathBuf,
    quarantine: PathBuf,
    pub(super) boot: String,
    /// Stale files that could not be removed.
    refused: BTreeSet<PathBuf>,
    _lock: Flock<File>,
}

impl Store {
    /// Creates the directories, for root only, and takes the lock.
    ///
    /// # Errors
    /// [`StoreError::Taken`], or the file system's.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        let attachments = directory.join("attachments");
        let quarantine = directory.join("quarantine");
        for path in [directory, &attachments, &quarantine] {
            DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed("create", path))?;
        }
        let path = directory.join("lock");
        let file = match OpenOptions::new().create(true).write(true).truncate(false).mode(0o600).open(&path) {
            // On a read-only file system existing attachments are still served.
            Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => File::open(&path),
            opened => opened,
        };
        let file = file.map_err(failed("open", &path))?;
        let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock)
            .map_err(|_| StoreError::Taken(directory.to_path_buf()))?;
        let boot = Path::new(BOOT_ID);
        let boot = fs::read_to_string(boot).map_err(failed("read", boot))?.trim().to_owned();
        Ok(Self { attachments, quarantine, boot, refused: BTreeSet::new(), _lock: lock })
    }

    /// Writes an attachment's file: a temporary file that is renamed.
    ///
    /// Neither the file nor its directory is synced: the page cache survives a killed agent, and after a power cut
    /// the links, programs and maps that the file describes are gone too.
    ///
    /// # Errors
    /// The file system's; no file stays behind.
    pub fn write(&mut self, port: &BridgePort) -> Result<(), StoreError> {
        let record = Record { format: FORMAT, boot: self.boot.clone(), port: port.clone() };
        self.put(&self.path(&port.key), &record.write()?)
    }

    /// Removes an attachment's file; it may be gone already.
    ///
    /// # Errors
    /// The file system's: [`Store::retry`] tries again.
    pub fn remove(&mut self, key: &AttachmentKey) -> Result<(), StoreError> {
        self.take_away(self.path(key))
    }

    /// Removes a file that cannot be read, or moves it to quarantine where the file system does not remove it.
    pub fn discard(&mut self, key: &AttachmentKey) {
        let path = self.path(key);
        if self.take_away(path.clone()).is_err() {
            self.put_aside(&path);
            self.refused.remove(&path);
        }
    }

    /// Retries to remove stale files: the next agent would take them for attachments.
    pub fn retry(&mut self) {
        for path in mem::take(&mut self.refused) {
            if let Err(error) = self.take_away(path) {
                tracing::debug!(%error, "cannot remove a stale state file");
            }
        }
    }

    /// Replaces a file's content atomically.
    pub(super) fn put(&mut self, path: &Path, content: &[u8]) -> Result<(), StoreError> {
        let unfinished = path.with_added_extension(&UNFINISHED[1..]);
        let written = write_new(&unfinished, content)
            .and_then(|()| failpoints::pass(Failpoint::Files))
            .and_then(|()| fs::rename(&unfinished, path))
            .map_err(failed("write", path));
        if written.is_err() {
            let _absent = failpoints::pass(Failpoint::Files).and_then(|()| fs::remove_file(&unfinished));
        } else {
            self.refused.remove(path);
        }
        written
    }

    /// Removes a file, now or by [`Store::retry`]; it may be gone already.
    pub(super) fn take_away(&mut self, path: PathBuf) -> Result<(), StoreError> {
        match failpoints::pass(Failpoint::Files).and_then(|()| fs::remove_file(&path)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let refusal = failed("remove", &path)(error);
                self.refused.insert(path);
                Err(refusal)
            }
            _ => Ok(()),
        }
    }

    /// Checks that the directory is writable: writes and removes a file.
    ///
    /// # Errors
    /// The file system's.
    pub fn probe(&self) -> Result<(), StoreError> {
        let path = self.attachments.with_file_name("probe");
        let written = write_new(&path, &[b'\n'; 4096]).and_then(|()| fs::remove_file(&path));
        if written.is_err() {
            let _absent = fs::remove_file(&path);
        }
        written.map_err(failed("write", &path))
    }

    /// Whether the attachment's file has exactly this content.
    pub fn holds(&self, port: &BridgePort) -> bool {
        Record::open(&self.path(&port.key)).is_ok_and(|record| record.port == *port)
    }

    /// Reads every file. Torn files are moved to quarantine, temporary files are removed. A file that can be
    /// neither moved nor removed is ignored.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn load(&self) -> Result<Loaded, StoreError> {
        let mut loaded = Loaded::default();
        for entry in fs::read_dir(&self.attachments).map_err(failed("read", &self.attachments))? {
            let path = entry.map_err(failed("read", &self.attachments))?.path();
            if path.to_string_lossy().ends_with(UNFINISHED) {
                remove_useless(&path);
                continue;
            }
            match self.read(&path) {
                Ok(record) if record.boot == self.boot => loaded.records.push(record),
                Ok(record) => loaded.outlived.push(record.port),
                Err(reason) if reason.may_pass() => loaded.unreadable.push(Unreadable { path, reason }),
                Err(reason) => {
                    loaded.unreadable.push(Unreadable { path: self.put_aside(&path), reason });
                }
            }
        }
        Ok(loaded)
    }

    fn read(&self, path: &Path) -> Result<Record, RecordError> {
        let record = Record::open(path)?;
        if self.path(&record.port.key) == path {
            Ok(record)
        } else {
            Err(RecordError::Misnamed(record.port.key))
        }
    }

    /// The directory of relocation files.
    pub(super) fn relocations_directory(&self) -> PathBuf {
        self.attachments.with_file_name("relocations")
    }

    /// Moves an unreadable file to quarantine. Returns its path.
    pub(super) fn put_aside(&self, path: &Path) -> PathBuf {
        let aside = self.quarantine.join(path.file_name().unwrap_or_default());
        match fs::rename(path, &aside) {
            Ok(()) => aside,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "cannot move an unreadable state file");
                path.to_path_buf()
            }
        }
    }

    /// The directory of records.
    pub fn directory(&self) -> &Path {
        &self.attachments
    }

    /// Where an attachment's record is.
    pub fn path(&self, key: &AttachmentKey) -> PathBuf {
        self.attachments.join(name::of(key))
    }
}

/// Removes a temporary file; a failure is only logged.
fn remove_useless(path: &Path) {
    if let Err(error) = fs::remove_file(path) {
        tracing::warn!(path = %path.display(), %error, "cannot remove a temporary state file");
    }
}

/// Writes a file for root alone; truncates one that exists.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    failpoints::pass(Failpoint::Files)?;
    OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path)?.write_all(bytes)
}
