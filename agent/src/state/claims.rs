//! Claim files: what is prepared for the kubelet, one file a claim in `claims/`.
//!
//! A file is written, to the disk, before the kubelet is answered. It outlives a reboot: the kubelet still has the claim then, and may have the pod
//! started again without another word. The directory is created with the first file.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use shunt_regular_file::read_own;

use super::name;
use super::record::FORMAT;
use super::store::{Store, StoreError, UNFINISHED, failed};
use crate::claims::Claim;

/// Bytes of a file. A claim has 32 devices at most, each with names of 253 bytes at most.
const LONGEST: u64 = 64 << 10;

/// A file's content.
#[derive(Serialize, Deserialize)]
struct ClaimFile {
    /// [`FORMAT`].
    format: u32,
    claim: Claim,
}

impl Store {
    /// Writes or replaces a claim's file.
    ///
    /// # Errors
    /// The file system's; what was written before is still there.
    pub fn write_claim(&mut self, claim: &Claim) -> Result<(), StoreError> {
        let directory = self.claims_directory();
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&directory);
        made.map_err(failed("create", &directory))?;
        let path = self.claim_path(&claim.uid);
        let file = ClaimFile { format: FORMAT, claim: claim.clone() };
        let mut content = serde_json::to_vec(&file).map_err(|error| failed("write", &path)(error.into()))?;
        content.push(b'\n');
        self.put(&path, &content)?;
        settle(&path).and_then(|()| settle(&directory)).map_err(failed("write", &path))
    }

    /// Removes a claim's file; it may be gone already.
    ///
    /// # Errors
    /// The file system's: [`Store::retry`] tries again.
    pub fn remove_claim(&mut self, uid: &str) -> Result<(), StoreError> {
        self.take_away(self.claim_path(uid))
    }

    /// Reads the claims' files. Unreadable ones are moved to quarantine and returned second; those of a newer agent stay.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn claims(&self) -> Result<(Vec<Claim>, Vec<PathBuf>), StoreError> {
        let (mut found, mut unreadable) = (Vec::new(), Vec::new());
        let directory = self.claims_directory();
        let entries = match fs::read_dir(&directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((found, unreadable)),
            entries => entries.map_err(failed("read", &directory))?,
        };
        for entry in entries {
            let path = entry.map_err(failed("read", &directory))?.path();
            if path.to_string_lossy().ends_with(UNFINISHED) {
                // A temporary file: a failure to remove it is met again at the next start.
                let _left = fs::remove_file(&path);
                continue;
            }
            let read = read_own(&path, LONGEST).ok();
            match read.and_then(|bytes| serde_json::from_slice::<ClaimFile>(&bytes).ok()) {
                Some(file) if file.format > FORMAT => unreadable.push(path),
                Some(file) if self.claim_path(&file.claim.uid) == path => found.push(file.claim),
                _ => unreadable.push(self.put_aside(&path)),
            }
        }
        Ok((found, unreadable))
    }

    fn claims_directory(&self) -> PathBuf {
        self.directory().with_file_name("claims")
    }

    fn claim_path(&self, uid: &str) -> PathBuf {
        self.claims_directory().join(name::of_parts(&[uid]))
    }
}

/// Waits until a file, or the names in a directory, are on the disk.
fn settle(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
