//! Which prefixes are masqueraded: what the attachments that are there want, and nothing that one that is gone wanted.

use std::collections::BTreeSet;

use super::Agent;
use crate::nft::{self, MasqueradeRule, NftError};

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
        match nft::replace(&wanted) {
            // Nothing to set and nothing to remove: a kernel without nf_tables will do.
            Err(_) if wanted.is_empty() && self.masquerading.is_none() => {}
            replaced => replaced?,
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
