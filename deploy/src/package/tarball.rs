//! The tar file, to be unpacked at a node's root. Directories are not in it: those of the node keep their modes.

use anyhow::Result;

use super::about::PACKAGE;
use super::files::{EXAMPLE, Files, ZSH_OF_OTHERS};
use crate::compress::gzip;
use crate::layer;
use crate::origin::Origin;
use crate::program::Architecture;

pub(super) fn file_name(version: &str, architecture: Architecture) -> String {
    format!("{PACKAGE}-{version}-linux-{architecture}.tar.gz")
}

/// Packs the files.
///
/// # Errors
/// A path does not fit into a tar file.
pub(super) fn pack(files: &Files, origin: &Origin) -> Result<Vec<u8>> {
    let contents = files.at(ZSH_OF_OTHERS, EXAMPLE).without_directories();
    gzip(&layer::archive(&contents, origin)?)
}
