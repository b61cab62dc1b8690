//! What the agent remembers of masquerading.

use std::hash::{BuildHasher, RandomState};
use std::time::Instant;

use super::ways_out::WaysOut;
use crate::config::Masquerading;

/// State of masquerading.
#[derive(Debug)]
pub(crate) struct Masquerade {
    pub(super) mode: Masquerading,
    pub(super) last: Option<Instant>,
    /// Of which generation of nf_tables that was.
    pub(super) generation: Option<u32>,
    /// The external filter that was logged last.
    pub(super) external_filter: Option<String>,
    /// Whether the programs see to it, or carry what the kernel begins; else all of it is the kernel's.
    pub(crate) by_programs: bool,
    /// The latest sweep of connections when the programs last began one.
    pub(super) last_begun: u64,
    pub(super) seed: u32,
    /// How masqueraded connections are to leave.
    pub(super) ways_out: WaysOut,
    /// Whether the programs' maps were made to say so.
    pub(super) is_applied: bool,
}

impl Masquerade {
    /// Why the kernel begins masqueraded connections, if it does.
    pub(crate) fn external_filter(&self) -> Option<&str> {
        self.external_filter.as_deref()
    }

    /// Whether the kernel masquerades because others have rules.
    pub(crate) fn is_behind_others(&self) -> bool {
        self.mode == Masquerading::Auto && self.external_filter.is_some()
    }

    pub(crate) fn new(mode: Masquerading) -> Self {
        // `RandomState` is seeded by the kernel's random numbers.
        let seed = RandomState::new().hash_one(0) as u32;
        Self {
            mode,
            last: None,
            generation: None,
            external_filter: None,
            by_programs: false,
            last_begun: 0,
            seed,
            ways_out: WaysOut::default(),
            is_applied: false,
        }
    }
}
