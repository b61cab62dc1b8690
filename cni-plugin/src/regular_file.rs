//! Files that a configuration names: only regular ones are opened. Whoever opens a pipe waits for its other end, and a device does something.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::fcntl::OFlag;

/// Opens a file for reading.
///
/// # Errors
/// The file system's; `InvalidInput` for what is no regular file.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let is_regular = |metadata: fs::Metadata| match metadata.is_file() {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file")),
    };
    is_regular(fs::metadata(path)?)?;
    // What stands there may have changed since.
    let file = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)?;
    is_regular(file.metadata()?)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use nix::sys::stat::Mode;

    use super::*;

    #[test]
    fn pipes_devices_and_directories_are_refused_and_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        nix::unistd::mkfifo(&pipe, Mode::S_IRWXU).unwrap();
        for path in [&pipe, Path::new("/dev/zero"), dir.path()] {
            assert_eq!(open(path).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{}", path.display());
        }
        fs::write(dir.path().join("file"), "x").unwrap();
        open(&dir.path().join("file")).unwrap();
    }
}
