//! Compression that gives the same bytes each time.

use std::io::Write as _;

use anyhow::{Context, Result};
use flate2::{Compression, GzBuilder};

/// Compresses with gzip. No time and no name of a file are in its header.
///
/// # Errors
/// Never: it writes to memory.
pub(crate) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut compressed = GzBuilder::new().mtime(0).write(Vec::new(), Compression::default());
    compressed.write_all(bytes).and_then(|()| compressed.finish()).context("compress")
}
