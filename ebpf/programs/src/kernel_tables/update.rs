//! Flags of an update (`linux/bpf.h`).

/// Create or overwrite.
pub(super) const ANY: u64 = 0;

/// Create, and never overwrite.
pub(super) const NOEXIST: u64 = 1;

/// Overwrite, and never create.
pub(super) const EXIST: u64 = 2;
