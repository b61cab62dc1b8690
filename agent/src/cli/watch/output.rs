//! Where a capture goes. Packets are others' data: a file is its owner's alone.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, IsTerminal as _, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use nix::libc;
use nix::unistd::geteuid;

/// The file's mode.
const MODE: u32 = 0o600;

/// What a capture is written to.
#[derive(Debug)]
pub(in crate::cli) enum Output {
    /// Standard output.
    Standard,
    /// A regular file of the caller's under one name; its content is as it was.
    File(File),
    /// A file that is not there yet.
    New(PathBuf),
}

impl Output {
    /// Opens a file that is there, or standard output for `-`; none where that is a terminal. Nothing is made or changed.
    ///
    /// # Errors
    /// The file system's, as for a directory that is not there; `InvalidInput` for a link, a pipe, a device, and a file of others' or with
    /// several names.
    pub(in crate::cli) fn open(path: &Path) -> io::Result<Option<Self>> {
        if path == Path::new("-") {
            return Ok((!io::stdout().is_terminal()).then_some(Self::Standard));
        }
        let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
        // Emptied later: until the agent answers, an earlier capture stays.
        let file = match OpenOptions::new().write(true).custom_flags(flags).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound && folder(path).is_dir() => {
                return Ok(Some(Self::New(path.to_path_buf())));
            }
            Err(error) => {
                return Err(match error.raw_os_error() {
                    // A link, and a pipe that nobody reads.
                    Some(libc::ELOOP | libc::ENXIO) => foreign(),
                    _ => error,
                });
            }
        };
        let found = file.metadata()?;
        let is_own = found.is_file() && found.uid() == geteuid().as_raw() && found.nlink() == 1;
        if is_own { Ok(Some(Self::File(file))) } else { Err(foreign()) }
    }

    /// Makes the file, or empties it and leaves it to its owner only.
    ///
    /// # Errors
    /// The file system's.
    pub(in crate::cli) fn begin(self) -> io::Result<Box<dyn Write>> {
        match self {
            Self::Standard => Ok(Box::new(io::stdout())),
            Self::File(file) => {
                file.set_permissions(Permissions::from_mode(MODE))?;
                file.set_len(0)?;
                Ok(Box::new(file))
            }
            Self::New(path) => {
                let file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(path)?;
                Ok(Box::new(file))
            }
        }
    }
}

/// Where the file is.
fn folder(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or_else(|| Path::new("."))
}

fn foreign() -> io::Error {
    let what = "it is no regular file that is yours under this name only: name another one";
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use nix::sys::stat::Mode;

    use super::*;

    #[test]
    fn an_earlier_file_is_emptied_late_and_becomes_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("packets");
        fs::write(&file, "earlier packets").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        let output = Output::open(&file).unwrap().unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"earlier packets");
        output.begin().unwrap().write_all(b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, MODE);
    }

    #[test]
    fn a_new_file_is_made_late_and_is_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("packets");
        let output = Output::open(&file).unwrap().unwrap();
        assert!(!file.exists());
        output.begin().unwrap().write_all(b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, MODE);
        let nowhere = Output::open(&folder.path().join("none/packets")).unwrap_err();
        assert_eq!(nowhere.kind(), io::ErrorKind::NotFound);
        // What somebody else has made meanwhile is not written to.
        let late = folder.path().join("late");
        let output = Output::open(&late).unwrap().unwrap();
        fs::write(&late, "somebody's").unwrap();
        assert_eq!(output.begin().err().unwrap().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&late).unwrap(), b"somebody's");
    }

    #[test]
    fn links_pipes_and_devices_are_refused_and_nothing_behind_them_changes() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link, second, pipe] =
            ["file", "link", "second", "pipe"].map(|name| folder.path().join(name));
        fs::write(&file, "somebody's").unwrap();
        symlink(&file, &link).unwrap();
        nix::unistd::mkfifo(&pipe, Mode::S_IRWXU).unwrap();
        let refused = |path: &Path| Output::open(path).unwrap_err().kind();
        assert_eq!(refused(&pipe), io::ErrorKind::InvalidInput, "nobody reads it");
        let flags = OFlag::O_NONBLOCK.bits();
        let _reader = OpenOptions::new().read(true).custom_flags(flags).open(&pipe).unwrap();
        assert_eq!(refused(&pipe), io::ErrorKind::InvalidInput);
        assert_eq!(refused(&link), io::ErrorKind::InvalidInput);
        assert_eq!(refused(Path::new("/dev/null")), io::ErrorKind::InvalidInput);
        fs::hard_link(&file, &second).unwrap();
        assert_eq!(refused(&second), io::ErrorKind::InvalidInput);
        assert_eq!(fs::read(&file).unwrap(), b"somebody's");
    }
}
