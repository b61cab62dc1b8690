//! What the agent remembers of leases between two checks.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::{Instant, SystemTime};

use shunt_agent_api::{AttachmentKey, BridgePort};
use shunt_leases::Identity;

use super::directories::{Directories, TURNS};
use super::files::{Amiss, RESPITE, is_locked, take_back};
use crate::failpoints;
use crate::registry::Registry;

/// Attachments whose leases are checked per second, at least, while any are; a tenth of all otherwise.
const AT_LEAST: usize = 16;

/// State of leases between two checks.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    /// When a lease was first found missing.
    missing: BTreeMap<AttachmentKey, Instant>,
    /// Attachments with any fault, which are checked every second.
    amiss: BTreeSet<AttachmentKey>,
    /// Restored files: the agent removes them if the container disappears without a DEL.
    pub(super) put_back: BTreeMap<AttachmentKey, Vec<(IpAddr, Identity)>>,
    /// The attachment that was checked last.
    last: Option<AttachmentKey>,
    /// Which directories are looked at.
    directories: Directories,
}

impl Leases {
    /// The attachments whose leases are checked now: all with a fault, and some in turn where their directories may have changed.
    pub(super) fn in_turn(&mut self, registry: &Registry) -> BTreeSet<AttachmentKey> {
        let mut keys = self.amiss.clone();
        self.directories.look(registry, SystemTime::now());
        if !self.directories.are_any_due() {
            return keys;
        }
        for _ in 0..registry.len().min(AT_LEAST.max(registry.len().div_ceil(TURNS))) {
            let Some(key) = registry.after(self.last.as_ref()) else { break };
            if registry.get(key).is_some_and(|attachment| self.directories.is_due(&attachment.port)) {
                keys.insert(key.clone());
            }
            self.last = Some(key.clone());
        }
        keys
    }

    /// Notes what is wrong with an attachment's leases, and since when one is missing.
    pub(super) fn note(&mut self, key: &AttachmentKey, amiss: Option<&Amiss>) {
        match amiss {
            Some(_) => _ = self.amiss.insert(key.clone()),
            None => _ = self.amiss.remove(key),
        }
        match amiss {
            Some(Amiss::Missing(_)) => _ = self.missing.entry(key.clone()).or_insert_with(failpoints::now),
            _ => _ = self.missing.remove(key),
        }
    }

    /// Whether a missing lease is to be restored now. While an IPAM holds the lock, the next check is soon enough.
    pub(super) fn is_missing_for_long(&self, port: &BridgePort) -> bool {
        let since = self.missing.get(&port.key);
        since.is_some_and(|since| failpoints::now().duration_since(*since) >= RESPITE) && !is_locked(port)
    }

    /// An attachment is gone.
    pub(crate) fn forget(&mut self, port: &BridgePort) {
        self.note(&port.key, None);
        if let (Some(made), Some(data_dir)) = (self.put_back.remove(&port.key), &port.lease_dir)
            && let Err(error) = take_back(port, data_dir, &made)
        {
            tracing::warn!(key = %port.key, %error, "cannot free a restored lease: DEL or GC will");
        }
    }
}
