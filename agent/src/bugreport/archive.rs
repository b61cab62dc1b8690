//! The archive: packed in memory, whose size is bounded by the parts', and written as a whole or not at all.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, Header};
use tempfile::NamedTempFile;

use super::manifest::{Manifest, PartReport};
use super::part::{Lack, Outcome};

/// The directory in the archive.
const FOLDER: &str = "shunt-bugreport";

/// Why there is no archive.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// It cannot be packed.
    #[error("the parts cannot be packed: {0}")]
    Pack(io::Error),
    /// Something is there already.
    #[error("{0} exists and is left as it is: name another file with --output")]
    Exists(PathBuf),
    /// It cannot be written.
    #[error(
        "{path} cannot be written, and nothing of it is left: {source}; name another place with --output"
    )]
    Write {
        /// Where.
        path: PathBuf,
        /// The file system's word.
        source: io::Error,
    },
}

/// An archive that is being packed, or is packed.
pub(super) struct Archive {
    builder: Builder<GzEncoder<Vec<u8>>>,
    seconds: u64,
}

impl Archive {
    pub(super) fn new(time: SystemTime) -> Self {
        let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Self { builder: Builder::new(GzEncoder::new(Vec::new(), Compression::fast())), seconds }
    }

    /// Packs a part, as far as it was had.
    ///
    /// # Errors
    /// [`ArchiveError::Pack`].
    pub(super) fn add(&mut self, file: &str, outcome: Outcome) -> Result<PartReport, ArchiveError> {
        let mut part = PartReport { file: file.to_owned(), ..PartReport::default() };
        match outcome.0 {
            Ok(mut had) => {
                part.note = had.note.take();
                let bytes = had.into_bytes();
                part.bytes = Some(bytes.len());
                self.put(file, &bytes)?;
            }
            Err(lack) => {
                part.failed = matches!(lack, Lack::Failed(_));
                let (Lack::Absent(why) | Lack::Failed(why)) = lack;
                part.missing = Some(why);
            }
        }
        Ok(part)
    }

    /// # Errors
    /// [`ArchiveError::Pack`].
    pub(super) fn add_manifest(&mut self, manifest: &Manifest<'_>) -> Result<(), ArchiveError> {
        let bytes = serde_json::to_vec_pretty(manifest).map_err(|error| ArchiveError::Pack(error.into()))?;
        self.put("manifest.json", &bytes)
    }

    fn put(&mut self, file: &str, bytes: &[u8]) -> Result<(), ArchiveError> {
        let mut header = Header::new_ustar();
        header.set_mode(0o600);
        header.set_mtime(self.seconds);
        header.set_size(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        let packed = self.builder.append_data(&mut header, format!("{FOLDER}/{file}"), bytes);
        packed.map_err(ArchiveError::Pack)
    }

    /// # Errors
    /// [`ArchiveError::Pack`].
    pub(super) fn close(self) -> Result<PackedBytes, ArchiveError> {
        let packed = self.builder.into_inner().and_then(GzEncoder::finish);
        packed.map(PackedBytes).map_err(ArchiveError::Pack)
    }
}

/// A whole archive.
#[derive(Debug)]
pub(super) struct PackedBytes(Vec<u8>);

impl PackedBytes {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Writes it under another name, for its owner only, and renames it to `path` where nothing is.
    ///
    /// # Errors
    /// [`ArchiveError::Exists`], [`ArchiveError::Write`].
    pub(super) fn write(&self, path: &Path) -> Result<PathBuf, ArchiveError> {
        let failed = |source| ArchiveError::Write { path: path.to_path_buf(), source };
        if path.symlink_metadata().is_ok() {
            return Err(ArchiveError::Exists(path.to_path_buf()));
        }
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        // Its file goes with it, if it is not kept.
        let mut file = NamedTempFile::new_in(folder).map_err(failed)?;
        file.write_all(&self.0).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
        file.persist_noclobber(path).map_err(|refused| match refused.error.kind() {
            io::ErrorKind::AlreadyExists => ArchiveError::Exists(path.to_path_buf()),
            _ => failed(refused.error),
        })?;
        Ok(fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf()))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::super::part::Had;
    use super::*;

    fn packed() -> PackedBytes {
        let mut archive = Archive::new(SystemTime::now());
        let part = archive.add("one.txt", Outcome(Ok(Had::text("text")))).unwrap();
        assert_eq!((part.bytes, part.missing), (Some(4), None));
        let part = archive.add("two.txt", Outcome(Err(Lack::Failed("why".into())))).unwrap();
        assert!(part.failed && part.missing.as_deref() == Some("why"));
        archive.close().unwrap()
    }

    #[test]
    fn the_file_is_its_owners_and_what_is_there_stays() {
        let dir = tempfile::tempdir().unwrap();
        let [path, link, target] = ["a.tar.gz", "link", "target"].map(|name| dir.path().join(name));
        packed().write(&path).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let read = flate2::read::GzDecoder::new(fs::File::open(&path).unwrap());
        let mut archive = tar::Archive::new(read);
        let names: Vec<_> =
            archive.entries().unwrap().map(|entry| entry.unwrap().path().unwrap().into_owned()).collect();
        assert_eq!(names, [Path::new("shunt-bugreport/one.txt")]);
        symlink(&target, &link).unwrap();
        for there in [&path, &link] {
            assert!(matches!(packed().write(there), Err(ArchiveError::Exists(_))));
        }
        assert!(!target.exists() && fs::read_dir(dir.path()).unwrap().count() == 2, "nothing is left behind");
    }

    #[test]
    fn a_folder_that_is_not_there_is_named_with_the_cure() {
        let refused = packed().write(Path::new("/nowhere/at/all.tar.gz")).unwrap_err().to_string();
        assert!(refused.contains("/nowhere/at") && refused.contains("--output"), "{refused}");
    }
}
