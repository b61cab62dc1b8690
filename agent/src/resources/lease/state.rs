//! What the agent remembers of leases between two checks.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Instant;

use shunt_agent_api::{AttachmentKey, BridgePort};
use shunt_leases::Identity;

use super::files::{Amiss, take_back};

/// State of leases between two checks.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    /// When a lease was first found missing.
    pub(super) missing: BTreeMap<AttachmentKey, Instant>,
    /// Faults that were reported.
    pub(super) amiss: BTreeMap<AttachmentKey, Amiss>,
    /// Restored files: the agent removes them if the container disappears without a DEL.
    pub(super) put_back: BTreeMap<AttachmentKey, Vec<(IpAddr, Identity)>>,
    /// The attachment that was checked last.
    pub(super) last: Option<AttachmentKey>,
}

impl Leases {
    /// An attachment is gone.
    pub(crate) fn forget(&mut self, port: &BridgePort) {
        self.missing.remove(&port.key);
        self.amiss.remove(&port.key);
        if let (Some(made), Some(data_dir)) = (self.put_back.remove(&port.key), &port.lease_dir)
            && let Err(error) = take_back(port, data_dir, &made)
        {
            tracing::warn!(key = %port.key, %error, "cannot free a restored lease: DEL or GC will");
        }
    }

    /// What an operator should know.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> {
        self.amiss.iter().map(|(key, amiss)| format!("{key}: {amiss}"))
    }
}
