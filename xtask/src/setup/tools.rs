//! What the kernel programs are built with.

use std::path::PathBuf;

use super::toolchain::Toolchain;

/// What the kernel programs are built with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tools {
    pub(crate) toolchain: Toolchain,
    /// The path of bpf-linker.
    pub(crate) linker: PathBuf,
}
