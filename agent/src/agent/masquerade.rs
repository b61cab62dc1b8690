//! Which prefixes are masqueraded: what the attachments that are there want, and nothing that one that is gone wanted.

use std::collections::BTreeSet;
use std::thread;

use super::Agent;
use crate::bpf::expedite::Expedited;
use crate::nft::{self, Committed, MasqueradeRule, NftError};

impl Agent {
    /// Brings the kernel's rules in line with the attachments. Costs nothing while the list is the same.
    ///
    /// # Errors
    /// The kernel refuses; its rules are as they were.
    pub(super) fn masquerade(&mut self) -> Result<(), NftError> {
        let wanted = self.wanted();
        if self.masquerading.as_ref() == Some(&wanted) {
            return Ok(());
        }
        let expedited = self.kernel.expedite();
        match nft::replace(&wanted) {
            // Nothing to set and nothing to remove: a kernel without nf_tables will do.
            Err(_) if wanted.is_empty() && self.masquerading.is_none() => {}
            replaced => settle(replaced?, expedited),
        }
        tracing::info!(rules = wanted.len(), "masquerading");
        self.masquerading = Some(wanted);
        Ok(())
    }

    fn wanted(&self) -> BTreeSet<MasqueradeRule> {
        let ports = self.registry.attachments().map(|attachment| &attachment.port);
        ports
            .flat_map(|port| port.masquerade.iter().map(|prefix| (port.key.network.clone(), prefix)))
            .filter_map(|(network, prefix)| Some(MasqueradeRule { network, prefix: prefix.parse().ok()? }))
            .collect()
    }
}

/// Waits, beside the agent's own work, until the kernel has freed what was replaced.
fn settle(committed: Committed, expedited: Expedited) {
    let work = move || {
        drop(committed);
        expedited.release();
    };
    if let Err(error) = thread::Builder::new().name("settle".into()).spawn(work) {
        tracing::warn!(%error, "no thread to wait for the end of the old masquerade rules");
    }
}
