//! Why the files cannot be used.

use std::io;
use std::path::{Path, PathBuf};

use crate::lock::LockError;

/// What went wrong with a network's directory.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or directory could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Not a path that may be passed on: see [`crate::is_usable`].
    #[error("{} is no absolute path without `..`", .0.display())]
    Path(PathBuf),
    /// A network whose name is no file's name.
    #[error("{0:?} is not the name of a network's directory")]
    Network(String),
    /// See [`LockError`].
    #[error(transparent)]
    Lock(#[from] LockError),
}

impl Error {
    /// For `map_err`: names the file.
    pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.to_owned(), source }
    }
}
