//! What the agent remembers of masquerading.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::time::Instant;

use shunt_dataplane::abi::translation::Outlet;

use crate::config::Masquerading;

/// State of masquerading.
#[derive(Debug)]
pub(crate) struct Masquerade {
    pub(super) mode: Masquerading,
    pub(super) last: Option<Instant>,
    /// The external filter that was logged last.
    pub(super) external_filter: Option<String>,
    pub(super) seed: u32,
    /// The interfaces that are to masquerade, by ifindex.
    pub(super) outlets: BTreeMap<u32, Outlet>,
}

impl Masquerade {
    pub(crate) fn new(mode: Masquerading) -> Self {
        // `RandomState` is seeded by the kernel's random numbers.
        let seed = RandomState::new().hash_one(0) as u32;
        Self { mode, last: None, external_filter: None, seed, outlets: BTreeMap::new() }
    }
}
