//! The service's own files: for root alone, in directories that are made with the first one.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use shunt_regular_file::{Outlives, replace};

/// Bytes of a file's name (`NAME_MAX`): of a longer name nothing is known.
pub(crate) const NAME_MAX: usize = 255;

/// Writes a file in one step. No name of a network, a container or an interface begins with a dot, as that of the unfinished file does.
pub(crate) fn write(path: &Path, bytes: &[u8], outlives: Outlives) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    replace(path, bytes, 0o600, outlives)
}
