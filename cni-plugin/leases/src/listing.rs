//! What is in a directory: names and inodes.
//!
//! Not by libc's `opendir`: that asks for memory for each directory and gives it back, which with musl are mappings and page
//! faults, and takes longer than the listing.

use std::{ffi::OsStr, fs::File, io, mem::MaybeUninit, os::unix::ffi::OsStrExt, path::Path};

use rustix::fs::{Mode, OFlags, RawDir, open};

/// Bytes of one answer of the kernel's (`getdents64(2)`): some two hundred addresses.
const PIECE: usize = 8 << 10;

/// Tells `visit` of every entry, with its inode, in no order.
///
/// # Errors
/// The file system's.
pub(crate) fn each(directory: &Path, mut visit: impl FnMut(&OsStr, u64)) -> io::Result<()> {
    let directory =
        File::from(open(directory, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?);
    let mut piece = [MaybeUninit::uninit(); PIECE];
    let mut entries = RawDir::new(&directory, &mut piece);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            visit(OsStr::from_bytes(name), entry.ino());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn every_entry_is_told_once_however_many_there_are() {
        let dir = tempfile::tempdir().unwrap();
        let names: Vec<String> =
            (0..1000).map(|number| format!("10.0.{}.{}", number / 250, number % 250)).collect();
        for name in &names {
            fs::write(dir.path().join(name), "").unwrap();
        }
        let mut told = Vec::new();
        each(dir.path(), |name, inode| told.push((name.to_str().unwrap().to_owned(), inode))).unwrap();
        told.sort();
        let mut made: Vec<_> = names
            .into_iter()
            .map(|name| (name.clone(), fs::metadata(dir.path().join(name)).unwrap().ino()))
            .collect();
        made.sort();
        assert_eq!(told, made);
        assert_eq!(each(&dir.path().join("none"), |_, _| ()).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
