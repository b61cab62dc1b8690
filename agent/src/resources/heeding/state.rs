//! What the agent remembers of others' rules.

use crate::config::{FilterLease, Filters};

/// Whether others' rules are heeded, and why.
#[derive(Debug)]
pub(crate) struct Heeded {
    pub(super) mode: Filters,
    pub(super) lease: FilterLease,
    /// Whether ports are to be heeded.
    pub(super) is_on: bool,
    /// Whether others have rules for what the node sends by a bridge.
    pub(super) is_node_heeded: bool,
    /// Why TCP stays with the kernel; none where it does not.
    pub(super) tcp: Option<String>,
    /// Whether flows that were only bridged may be among those that connection tracking has.
    pub(super) has_been_on: bool,
}

impl Heeded {
    pub(crate) fn new(mode: Filters, lease: FilterLease) -> Self {
        Self { mode, lease, is_on: false, is_node_heeded: false, tcp: None, has_been_on: false }
    }

    /// Whether flows between containers meet others' rules.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Whether connection tracking may have seen flows that are none of the kernel's.
    pub(crate) fn has_been_on(&self) -> bool {
        self.has_been_on
    }

    /// Whether what the node sends by a bridge meets them.
    pub(crate) fn is_node_heeded(&self) -> bool {
        self.is_node_heeded
    }
}
