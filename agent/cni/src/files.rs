//! Files that are there whole or not at all.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Bytes of a file's name (`NAME_MAX`): of a longer name nothing is known.
pub(crate) const NAME_MAX: usize = 255;

/// What a file outlives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outlives {
    /// The process. After a loss of power it may be gone, or empty.
    Process,
    /// Also a loss of power: the disk is waited for, with the file's contents and its name.
    Power,
}

/// Writes a file for root alone, under another name first. Makes the directory if it is missing. Two writers of one file are kept apart
/// by the caller.
pub(crate) fn write(path: &Path, bytes: &[u8], outlives: Outlives) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    // No name of a network, a container or an interface begins with a dot.
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let unfinished = path.with_file_name(format!(".{name}.new"));
    remove(&unfinished)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
    let written = file.write_all(bytes);
    let written = written.and_then(|()| if outlives == Outlives::Power { file.sync_all() } else { Ok(()) });
    let written = written.and_then(|()| fs::rename(&unfinished, path));
    if written.is_err() {
        let _gone = fs::remove_file(&unfinished);
    }
    written?;
    match path.parent().filter(|_| outlives == Outlives::Power) {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

/// Removes a file, which may be gone.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
