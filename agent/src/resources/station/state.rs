//! What the agent remembers of the stations behind uplinks.

use std::collections::HashMap;
use std::time::Instant;

use shunt_dataplane::abi::StationKey;

/// State between two checks.
#[derive(Debug, Default)]
pub(crate) struct Learning {
    pub(super) last: Option<Instant>,
    /// Uplink and time of each station at its last FDB update.
    pub(super) told: HashMap<StationKey, (u32, u64)>,
}
