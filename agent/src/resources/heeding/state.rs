//! What the agent remembers of others' rules.

use shunt_netlink::netfilter::BaseChain;

use super::harmless::Harms;
use super::tracking::Tracking;
use super::watch::Watcher;
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
    /// Whether TCP may take the fast path.
    pub(super) tracking: Tracking,
    /// Who has rules that are heeded, for a person.
    pub(super) by: Vec<String>,
    /// What others' chains do.
    pub(super) harms: Harms,
    /// Which of others' rules keeps flows with the kernel.
    pub(super) kept: Kept,
    /// Hears of changes at once, while ports are heeded.
    pub(super) watcher: Option<Watcher>,
    /// Whether flows that were only bridged may be among those that connection tracking has.
    pub(super) has_been_on: bool,
}

/// Rules that judge each packet.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// The rule that keeps flows with the kernel.
    pub(super) by: Option<String>,
    /// In which generation, and of which chains, that was found.
    pub(super) read: Option<(u32, Vec<BaseChain>)>,
}

impl Heeded {
    pub(crate) fn new(mode: Filters, lease: FilterLease) -> Self {
        Self {
            mode,
            lease,
            is_on: false,
            is_node_heeded: false,
            tracking: Tracking::default(),
            by: Vec::new(),
            harms: Harms::default(),
            kept: Kept::default(),
            watcher: None,
            has_been_on: false,
        }
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
