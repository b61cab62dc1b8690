//! What is kept of containers that are gone.

use crate::departed::Departed;

/// What is kept, and whether it is on the disk.
#[derive(Debug, Default)]
pub(crate) struct KeptDeparted {
    pub(crate) carried: Departed,
    pub(super) is_changed: bool,
    /// Whether it could not be written last time, which is told once.
    pub(super) has_failed: bool,
}
