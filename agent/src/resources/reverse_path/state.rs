//! What the agent remembers of reverse path filters.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use shunt_dataplane::abi::ReversePath;

/// How the kernel filters sources at the interfaces of NAT ingress.
#[derive(Debug, Default)]
pub(crate) struct Filters {
    /// The filters, by ifindex.
    pub(super) entries: BTreeMap<u32, ReversePath>,
    /// Groups of interfaces with common multipath routes, and when these were read.
    pub(super) multipath: Vec<BTreeSet<u32>>,
    pub(super) routes_read: Option<Instant>,
}
