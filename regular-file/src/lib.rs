//! Files that a configuration names, or that stand in a directory: only regular ones are opened. Whoever opens a pipe waits for its other
//! end, and a device does something. What is written is there whole or not at all ([`replace`]).
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test"))]

mod whole;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::fcntl::OFlag;

pub use whole::{LONGEST_NAME, Outlives, remove, replace, unfinished};

/// Opens a file for reading. The path may be a link to it.
///
/// # Errors
/// The file system's; `InvalidInput` for what is no regular file.
pub fn open(path: &Path) -> io::Result<File> {
    is_regular(&fs::metadata(path)?)?;
    open_as(path, OFlag::empty())
}

/// Reads a file of a directory whose files are the caller's own: a link there is refused, too.
///
/// # Errors
/// The file system's; `InvalidInput` for what is no regular file or has more than `most` bytes.
pub fn read_own(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    is_regular(&fs::symlink_metadata(path)?)?;
    let mut content = Vec::new();
    open_as(path, OFlag::O_NOFOLLOW)?.take(most.saturating_add(1)).read_to_end(&mut content)?;
    if u64::try_from(content.len()).is_ok_and(|size| size <= most) {
        Ok(content)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it has more than {most} bytes")))
    }
}

/// What stands there may have changed since it was looked at.
fn open_as(path: &Path, flags: OFlag) -> io::Result<File> {
    let flags = OFlag::O_NONBLOCK | flags;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path)?;
    is_regular(&file.metadata()?)?;
    Ok(file)
}

fn is_regular(metadata: &fs::Metadata) -> io::Result<()> {
    match metadata.is_file() {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use nix::sys::stat::Mode;

    use super::*;

    const MOST: u64 = 8;

    #[test]
    fn pipes_devices_and_directories_are_refused_and_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        nix::unistd::mkfifo(&pipe, Mode::S_IRWXU).unwrap();
        for path in [&pipe, Path::new("/dev/zero"), dir.path()] {
            assert_eq!(open(path).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{}", path.display());
            let refused = read_own(path, MOST).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{}", path.display());
        }
        fs::write(dir.path().join("file"), "x").unwrap();
        open(&dir.path().join("file")).unwrap();
    }

    #[test]
    fn among_own_files_links_and_what_is_too_long_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let [file, link] = ["file", "link"].map(|name| dir.path().join(name));
        fs::write(&file, "12345678").unwrap();
        symlink(&file, &link).unwrap();
        open(&link).unwrap();
        assert_eq!(read_own(&file, MOST).unwrap(), b"12345678");
        assert_eq!(read_own(&link, MOST).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(read_own(&file, MOST - 1).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
